-- Cancels what the connections of one attempt of a job run now; they are found by their name.
-- Gives how many.
select count(*) filter (where pg_catalog.pg_cancel_backend(a.pid))
from pg_catalog.pg_stat_activity as a
where a.application_name = %(application_name)s::text
    and a.datname = pg_catalog.current_database()
    and a.pid <> pg_catalog.pg_backend_pid()
    and a.state <> 'idle'
    and pg_catalog.pg_has_role(a.usesysid, 'usage')
