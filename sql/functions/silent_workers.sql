-- Workers that are late: no sign of life for 2.2 seconds, when one is due every 2.
-- Returns: a row a worker, with the two facts that tell whether it is dead: how long silent, and how
-- long silence is forgiven (the longest visibility timeout of its queues). Whether its lock is gone
-- is for pgq.reap to see, under the worker's row lock.
-- Locks: none.
create or replace function pgq.silent_workers()
returns table (id bigint, lock_key bigint, silent interval, forgiven interval)
language sql stable set search_path = '' as $$
    select w.id, w.lock_key, now() - w.beat_at, pgq.forgiven_silence(w.queues)
    from pgq.workers as w
    where w.died_at is null and w.stopped_at is null
        and w.beat_at < now() - interval '2.2 seconds';
$$;
