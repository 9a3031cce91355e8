-- The session that answers: its process, and since when. Through a pooler it is not the process that
-- the connection was told of.
select a.pid, a.backend_start
from pg_catalog.pg_stat_activity as a
where a.pid = pg_catalog.pg_backend_pid()
