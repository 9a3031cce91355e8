-- Makes jobs end, as pgq.cancel and pgq.kill ask, who alone call this: a pending job is cancelled at
-- once; of a running one the worker is told; and one whose worker is marked dead, has stopped or is
-- unknown is cancelled at once, since nobody would hear. With force that is so for any running job.
-- Takes: the ids; whether the job is to be killed; force; who asks (for the audit).
-- Returns: a row an id, with outcome (cancelled, requested, already done, already failed, already
-- cancelled, not found) and the live worker that was told, or that may still run what was taken.
-- A job that is taken from its worker forgets it, so that a late finish is told of its lost lease.
-- Locks: job rows in order of id. Relies on: jobs_pkey, workers_pkey.
create or replace function pgq.end_jobs(
    p_ids bigint[], p_kill boolean, p_force boolean, p_actor text
) returns table (id bigint, outcome text, worker_id bigint)
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
    -- Locked first: a worker that claimed meanwhile is seen only by a statement that begins after.
    perform from pgq.jobs as j
    where j.id = any (p_ids) and j.shard = 0
    order by j.id
    for update;
    return query
    with found as materialized (
        select j.id, j.status, j.worker_id, j.locked_at as started_at, o.orphaned,
            j.status = 'running' and (o.orphaned or coalesce(p_force, false)) as taken,
            case when p_kill then 'killed' else 'cancelled' end || ' by an operator'
                || case when o.orphaned then ' after its worker was lost' else ' by force' end
                || coalesce(': ' || pgq.worker_name(j.worker_id), '')
                || case when o.orphaned then '' else ' may still run it' end as error
        from pgq.jobs as j
        cross join lateral (
            select not exists (
                select from pgq.workers as w
                where w.id = j.worker_id and w.died_at is null and w.stopped_at is null
            ) as orphaned
        ) as o
        where j.id = any (p_ids) and j.shard = 0
    ),
    changed as (
        update pgq.jobs as j
        set status = case when f.taken or f.status = 'pending' then 'cancelled' else f.status end,
            lease = case when not f.taken then j.lease end,
            worker_id = case when not f.taken then j.worker_id end,
            last_error = case when f.taken then f.error else j.last_error end,
            cancel_requested_at = coalesce(j.cancel_requested_at, now()),
            kill_requested_at = coalesce(j.kill_requested_at, case when p_kill then now() end),
            finished_at = case when f.taken or f.status = 'pending' then now() end,
            updated_at = now()
        from found as f
        where j.id = any (p_ids) and j.id = f.id and j.shard = 0 and f.status in ('pending', 'running')
        returning j.id, j.attempts, f.worker_id, f.started_at, f.taken, f.orphaned, f.error
    ),
    recorded as (
        insert into pgq.attempts (job_id, attempt, worker_id, started_at, outcome, error)
        select c.id, c.attempts, c.worker_id, c.started_at,
            case when c.orphaned then 'lost' else 'cancelled' end, c.error
        from changed as c
        where c.taken
    ),
    audited as (
        insert into pgq.audit (actor, action, details, changed)
        select p_actor, case when p_kill then 'kill' else 'cancel' end,
            jsonb_build_object('ids', to_jsonb(p_ids[1:100]), 'asked', cardinality(p_ids))
                || case when p_kill then jsonb_build_object('force', p_force) else '{}' end,
            (select count(*) from changed)
    )
    select g.id,
        case
            when f.id is null then 'not found'
            when f.taken or f.status = 'pending' then 'cancelled'
            when f.status = 'running' then 'requested'
            else 'already ' || f.status
        end,
        case when f.status = 'running' and not f.orphaned then f.worker_id end
    from (select distinct u.id from unnest(p_ids) as u (id)) as g
    left join found as f on f.id = g.id
    order by g.id;
end
$$;
