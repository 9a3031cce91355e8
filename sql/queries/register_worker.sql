select pgq.register_worker(
    %(host)s::text, %(pid)s::integer, %(version)s::text, %(queues)s::text[], %(kinds)s::text[],
    %(concurrency)s::integer, %(lock_key)s::bigint
)
