-- How long ago this session began, by the server's clock. Locks: none.
create or replace function pgq.session_age() returns interval
language sql volatile set search_path = ''
return clock_timestamp() - (
    select a.backend_start from pg_catalog.pg_stat_activity as a where a.pid = pg_backend_pid()
);
