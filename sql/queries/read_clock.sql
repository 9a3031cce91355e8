-- The time now, by the clock that decides.
select pg_catalog.clock_timestamp()
