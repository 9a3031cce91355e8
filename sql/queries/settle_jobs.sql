select pgq.settle(
    %(worker_id)s::bigint, %(ids)s::bigint[], %(leases)s::bigint[], %(attempts)s::integer[],
    %(outcomes)s::text[], %(delays)s::interval[], %(errors)s::text[], %(tracebacks)s::text[],
    %(outputs)s::text[]
)
