-- Sends jobs back to pending, as an operator asks: from failed, cancelled and done; from running
-- only when the worker is marked dead, has stopped or is unknown, or with force. Attempts, losses
-- and snoozes start again at 0; cancel request, result and finished_at are cleared; due now.
-- Force fences a live worker: its late finish changes nothing, but its handler still runs. The
-- attempt that was taken is recorded as lost.
-- Takes: the ids; force; who asks (for the audit).
-- Returns: a row an id, with outcome: requeued, already pending, running, not found, or
-- unique key taken (holder: the unfinished job that has it); and worker_id: the live worker that
-- runs it, or that may still run what force took from it.
-- Locks: job rows in order of id; then, in order of unique_key, whoever is taking one of the keys.
-- Relies on: jobs_pkey, workers_living.
create or replace function pgq.requeue(
    p_ids bigint[], p_force boolean default false, p_actor text default session_user
) returns table (id bigint, outcome text, holder bigint, worker_id bigint)
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_job record;
    v_taken text;
    v_requeued bigint[] := '{}';
begin
    -- Locked first: a worker that claimed meanwhile is seen only by a statement that begins after.
    perform from pgq.jobs as j
    where j.id = any (p_ids) and j.shard = 0
    order by j.id
    for update;
    for v_job in
        select g.id as asked, j.id, j.status, j.unique_key, j.worker_id,
            not exists (
                select from pgq.workers as w
                where w.id = j.worker_id and w.died_at is null and w.stopped_at is null
            ) as orphaned
        from (select distinct u.id from unnest(p_ids) as u (id)) as g
        left join pgq.jobs as j on j.id = any (p_ids) and j.id = g.id and j.shard = 0
        order by j.unique_key nulls first, g.id
    loop
        id := v_job.asked;
        holder := null;
        worker_id := case when v_job.status = 'running' and not v_job.orphaned then v_job.worker_id end;
        v_taken := case when v_job.status = 'running' then
            'requeued by an operator'
                || case when v_job.orphaned then ' after its worker was lost' else ' by force' end
                || coalesce(': ' || pgq.worker_name(v_job.worker_id), '')
                || case when v_job.orphaned then '' else ' may still run it' end
        end;
        outcome := case
            when v_job.id is null then 'not found'
            when v_job.status = 'pending' then 'already pending'
            when v_job.status = 'running' and not v_job.orphaned and not p_force then 'running'
            else pgq.requeue_one(v_job.asked, v_taken)
        end;
        if outcome = 'requeued' then
            v_requeued := v_requeued || v_job.asked;
        elsif outcome = 'unique key taken' then
            select j.id into holder
            from pgq.jobs as j
            where j.unique_key = v_job.unique_key
                and j.status in ('pending', 'running');
        end if;
        return next;
    end loop;
    perform pgq.wake(j.queue, j.kind, count(*))
    from pgq.jobs as j
    where j.id = any (v_requeued) and j.shard = 0
    group by j.queue, j.kind;
    insert into pgq.audit (actor, action, details, changed)
    values (
        p_actor, 'requeue',
        jsonb_build_object('ids', to_jsonb(p_ids[1:100]), 'asked', cardinality(p_ids), 'force', p_force),
        cardinality(v_requeued)
    );
end
$$;
