-- Ends a session of this role that its client gave up, so that what is still on the way to it is not
-- done any more. Its process identifier alone may be another session's by now. Returns: a row if
-- there was one.
select pg_catalog.pg_terminate_backend(a.pid)
from pg_catalog.pg_stat_activity as a
where a.pid = %(pid)s::integer and a.backend_start = %(since)s::timestamptz
