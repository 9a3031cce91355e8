-- Makes a worker known, with its queues. Claims are refused to workers that are not.
-- Takes: where it runs; its queues; the kinds it can run (null: any); how many at once; and the
-- key of the session advisory lock that it holds on its heartbeat connection (null: none can be
-- held, as through a pooler; then only the visibility timeout tells that it died).
-- Returns: its id, new at each call: that it is written is waited for, whatever the session's
-- synchronous_commit. A crash that forgets a registration takes its number back too, and gives it
-- to the next worker; two would beat, claim and give back jobs under one id.
-- Locks: none that others wait for.
create or replace function pgq.register_worker(
    p_host text,
    p_pid integer,
    p_version text,
    p_queues text[],
    p_kinds text[] default null,
    p_concurrency integer default 1,
    p_lock_key bigint default null
) returns bigint
language sql volatile set search_path = '' as $$
    select set_config('synchronous_commit', 'on', true);

    insert into pgq.queues (queue)
    select distinct u.queue from unnest(p_queues) as u (queue) order by u.queue
    on conflict (queue) do nothing;

    insert into pgq.workers (host, pid, version, queues, kinds, concurrency, lock_key)
    values (p_host, p_pid, p_version, p_queues, p_kinds, p_concurrency, p_lock_key)
    returning workers.id;
$$;
