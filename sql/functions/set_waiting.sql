-- Says whether a worker waits to be woken. Once committed, an enqueue that begins later wakes it;
-- the worker then looks once more, for what was enqueued before. Locks: the worker's own row.
create or replace function pgq.set_waiting(p_worker_id bigint, p_waiting boolean) returns void
language sql volatile set search_path = '' as $$
    update pgq.workers
    set waiting = p_waiting
    where id = p_worker_id and died_at is null and stopped_at is null and waiting <> p_waiting;
$$;
