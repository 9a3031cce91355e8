-- The process that answers. Through a pooler it is not the one that the connection was told of.
select pg_catalog.pg_backend_pid()
