-- The keys of the advisory locks that other sessions hold in this database: a worker's row names its
-- own. What this session holds itself, it has tried to take from a dead worker.
-- Returns: a row a key. Locks: none.
create or replace function pgq.held_locks() returns table (lock_key bigint)
language sql volatile set search_path = '' as $$
    select (l.classid::bigint << 32) | l.objid::bigint
    from pg_catalog.pg_locks as l
    join pg_catalog.pg_database as d on d.oid = l.database
    where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
        and l.pid <> pg_catalog.pg_backend_pid() and d.datname = pg_catalog.current_database();
$$;
