-- How long ago this session began, by the server's clock. One that seems to begin in the future is
-- old: the clock was set back meanwhile. Locks: none.
create or replace function pgq.session_age() returns interval
language sql volatile set search_path = ''
return (
    select
        case
            when a.backend_start > clock_timestamp() then interval '1 minute'
            else clock_timestamp() - a.backend_start
        end
    from pg_catalog.pg_stat_activity as a
    where a.pid = pg_backend_pid()
);
