-- Whether no claim of this worker is under way: each holds this lock, shared, until it ends.
select pg_catalog.pg_try_advisory_xact_lock(
    pg_catalog.hashtextextended('pgq.claim', %(worker_id)s::bigint)
)
