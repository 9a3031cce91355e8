-- A worker's sign of life, and all it needs to hear, in one call.
-- Takes: the worker; the key of the advisory lock that this session holds (null: none); whether
-- the worker drains; what of it cannot do its work now (null: nothing).
-- Returns one row: alive (false: it was declared dead, its jobs are given to others, and it must
-- stop them), cancelled and killed (ids of its running jobs that were asked to end, and that are to
-- be made to), overdue (a worker has been silent for 4 seconds: call pgq.reap), reap_in (the
-- seconds until that is so of the next silent one; null: none), forgiven (how long its own silence
-- would be forgiven if it held no lock; null: not known now). A live worker beats every 2 seconds;
-- one that is silent for longer is looked at again exactly when its 4 seconds are over, so that its
-- jobs run again within 5.
-- One that was silent itself for 6 seconds (a suspended host, a stalled server, a clock set forward)
-- sees nobody overdue until it has watched for 4 seconds: the others were perhaps silent with it.
-- Nor does a session younger than 5 seconds, which pgq.reap would not believe.
-- Locks: the worker's own row; those of workers whose beat lies in the future, skipping locked ones.
-- Relies on: jobs_running, workers_living.
create or replace function pgq.heartbeat(
    p_worker_id bigint,
    p_lock_key bigint default null,
    p_draining boolean default false,
    p_trouble text default null
) returns table (
    alive boolean,
    cancelled bigint[],
    killed bigint[],
    overdue boolean,
    reap_in double precision,
    forgiven interval
)
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_queues text[];
    v_blind interval;
begin
    update pgq.workers as w
    set beat_at = now(),
        lock_key = p_lock_key,
        draining_at = case when p_draining then coalesce(w.draining_at, now()) end,
        trouble = p_trouble,
        watching_since = case
            when now() - w.beat_at > interval '6 seconds' or w.watching_since > now() then now()
            else w.watching_since
        end
    where w.id = p_worker_id and w.died_at is null and w.stopped_at is null
    returning w.queues, w.watching_since + interval '4 seconds' - now() into v_queues, v_blind;
    alive := v_queues is not null;
    cancelled := '{}';
    killed := '{}';
    overdue := false;

    -- A lock on a whole table (vacuum full, an alter table) must not keep workers from beating: what
    -- cannot be heard now is heard later.
    begin
        perform set_config('lock_timeout', '300ms', true);
        select
            coalesce(array_agg(j.id) filter (where j.kill_requested_at is null), '{}'),
            coalesce(array_agg(j.id) filter (where j.kill_requested_at is not null), '{}')
        into cancelled, killed
        from pgq.jobs as j
        where j.queue = any (v_queues) and j.worker_id = p_worker_id
            and j.status = 'running' and j.cancel_requested_at is not null;

        forgiven := pgq.forgiven_silence(v_queues);

        -- The clock was set back: who beat before that would not be silent for as long.
        update pgq.workers as w
        set beat_at = now()
        where w.id in (
            select f.id
            from pgq.workers as f
            where f.died_at is null and f.stopped_at is null
                and f.beat_at > now() + interval '10 seconds'
            order by f.id
            for update skip locked
        );

        select
            coalesce(bool_or(l.left_over <= interval '0'), false),
            extract(epoch from min(l.left_over) filter (where l.left_over > interval '0'))
        into overdue, reap_in
        from (
            select
                greatest(
                    interval '4 seconds' - s.silent,
                    v_blind,
                    interval '5 seconds' - pgq.session_age()
                ) as left_over
            from pgq.silent_workers() as s
        ) as l;
    exception
        when lock_not_available then
            null;
    end;
    return next;
end
$$;
