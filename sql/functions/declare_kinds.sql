-- Records what jobs of these kinds get when they leave it out at enqueue: queue, attempts,
-- timeout (null: the queue `default`, 3 attempts, no timeout). Rows that say so already are left.
-- Returns: nothing. Locks: kinds rows that change, in order of kind.
create or replace function pgq.declare_kinds(
    p_kinds text[], p_queues text[], p_max_attempts integer[], p_timeouts interval[]
) returns void
language sql volatile set search_path = '' as $$
    insert into pgq.kinds as k (kind, queue, max_attempts, timeout)
    select u.kind, u.queue, u.max_attempts, u.timeout
    from unnest(p_kinds, p_queues, p_max_attempts, p_timeouts)
        as u (kind, queue, max_attempts, timeout)
    order by u.kind
    on conflict (kind) do update
    set queue = excluded.queue,
        max_attempts = excluded.max_attempts,
        timeout = excluded.timeout,
        updated_at = now()
    where (k.queue, k.max_attempts, k.timeout)
        is distinct from (excluded.queue, excluded.max_attempts, excluded.timeout);
$$;
