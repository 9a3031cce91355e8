-- A worker as errors name it: w-7 (web-1, pid 4711), w-7 once it is forgotten, null for no worker.
-- Locks: none. Relies on: workers_pkey.
create or replace function pgq.worker_name(p_worker_id bigint) returns text
language sql stable set search_path = '' as $$
    select 'w-' || p_worker_id || coalesce(
        (
            select ' (' || w.host || ', pid ' || w.pid || ')'
            from pgq.workers as w
            where w.id = p_worker_id
        ),
        ''
    );
$$;
