-- A worker's farewell, after its last finish: it claims and beats no more.
-- Locks: the worker's own row.
create or replace function pgq.stop_worker(p_worker_id bigint) returns void
language sql volatile set search_path = '' as $$
    update pgq.workers
    set stopped_at = now(), waiting = false, lock_key = null
    where id = p_worker_id and died_at is null and stopped_at is null;
$$;
