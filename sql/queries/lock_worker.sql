-- The session lock by which others see that this process lives.
select pg_catalog.pg_advisory_lock(%(lock_key)s::bigint)
