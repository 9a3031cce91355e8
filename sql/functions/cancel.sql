-- Asks jobs to end: a pending job is cancelled at once; a running one is asked to, and its worker
-- hears of it at its next heartbeat. A job that finishes first stays done.
-- Takes: the ids; who asks (for the audit).
-- Returns: a row an id, with outcome: cancelled, requested, already done, already failed,
-- already cancelled, or not found.
-- Locks: job rows in order of id. Relies on: jobs_pkey.
create or replace function pgq.cancel(p_ids bigint[], p_actor text default session_user)
returns table (id bigint, outcome text)
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
begin
    return query
    with locked as materialized (
        select j.id, j.status, j.lease
        from pgq.jobs as j
        where j.id = any (p_ids) and j.shard = 0
        order by j.id
        for update
    ),
    -- What the constraints look at comes from the locked row: they are checked first on a version
    -- made from the row as the snapshot has it, before the server finds that to be outdated.
    changed as (
        update pgq.jobs as j
        set status = case l.status when 'pending' then 'cancelled' else l.status end,
            lease = l.lease,
            finished_at = case l.status when 'pending' then now() end,
            cancel_requested_at = coalesce(j.cancel_requested_at, now()),
            updated_at = now()
        from locked as l
        where j.id = any (p_ids) and j.id = l.id and j.shard = 0 and l.status in ('pending', 'running')
        returning j.id
    ),
    audited as (
        insert into pgq.audit (actor, action, details, changed)
        select p_actor, 'cancel',
            jsonb_build_object('ids', to_jsonb(p_ids[1:100]), 'asked', cardinality(p_ids)),
            (select count(*) from changed)
    )
    select g.id,
        case l.status
            when 'pending' then 'cancelled'
            when 'running' then 'requested'
            else coalesce('already ' || l.status, 'not found')
        end
    from (select distinct u.id from unnest(p_ids) as u (id)) as g
    left join locked as l on l.id = g.id
    order by g.id;
end
$$;
