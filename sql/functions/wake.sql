-- Wakes waiting workers that serve a queue and a kind, one for each job, at most eight.
-- NOTIFY takes a lock of the whole server at commit, so it is sent only to workers that said they
-- wait, each on a channel of its own, with a short fixed text.
-- Returns: how many were woken. Locks: none before commit. Relies on: workers_living.
create or replace function pgq.wake(p_queue text, p_kind text, p_jobs bigint) returns bigint
language sql volatile
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    with woken as (
        select w.id from pgq.workers as w
        where w.waiting
            and w.died_at is null and w.stopped_at is null
            and w.beat_at > now() - interval '10 seconds'
            and p_queue = any (w.queues)
            and (w.kinds is null or p_kind = any (w.kinds))
        order by random()
        limit least(p_jobs, 8)
    )
    select count(pg_catalog.pg_notify('pgq_' || woken.id, 'look')) from woken;
$$;
