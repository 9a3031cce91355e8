-- A worker's sign of life, and all it needs to hear, in one call.
-- Takes: the worker; the key of the advisory lock that this session holds (null: none); whether
-- the worker drains.
-- Returns one row: alive (false: it was declared dead, its jobs are given to others, and it must
-- stop them), cancelled (ids of its running jobs that were asked to cancel), overdue (a worker has
-- been silent for 4 seconds: call pgq.reap), reap_in (the seconds until that is so of the next
-- silent one; null: none). A live worker beats every 2 seconds; one that is silent for longer is
-- looked at again exactly when its 4 seconds are over, so that its jobs run again within 5.
-- Locks: the worker's own row. Relies on: jobs_running.
create or replace function pgq.heartbeat(
    p_worker_id bigint, p_lock_key bigint default null, p_draining boolean default false
) returns table (alive boolean, cancelled bigint[], overdue boolean, reap_in double precision)
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_queues text[];
begin
    update pgq.workers as w
    set beat_at = now(),
        lock_key = p_lock_key,
        draining_at = case when p_draining then coalesce(w.draining_at, now()) end
    where w.id = p_worker_id and w.died_at is null and w.stopped_at is null
    returning w.queues into v_queues;
    return query select
        v_queues is not null,
        array(
            select j.id
            from pgq.jobs as j
            where j.queue = any (v_queues) and j.worker_id = p_worker_id
                and j.status = 'running' and j.cancel_requested_at is not null
        ),
        coalesce(bool_or(s.silent >= interval '4 seconds'), false),
        extract(
            epoch from min(interval '4 seconds' - s.silent)
                filter (where s.silent < interval '4 seconds')
        )::double precision
    from pgq.silent_workers() as s;
end
$$;
