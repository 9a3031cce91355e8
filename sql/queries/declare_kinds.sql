select pgq.declare_kinds(
    %(kinds)s::text[], %(queues)s::text[], %(max_attempts)s::integer[], %(timeouts)s::interval[]
)
