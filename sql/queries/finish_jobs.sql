select pgq.finish(
    %(worker_id)s::bigint, %(ids)s::bigint[], %(leases)s::bigint[], %(attempts)s::integer[],
    %(results)s::jsonb[], %(notes)s::text[]
)
