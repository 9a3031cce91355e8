select e.place, e.id, e.duplicate
from pgq.enqueue_many(
    %(kinds)s::text[], %(payloads)s::jsonb[], %(queues)s::text[], %(priorities)s::integer[],
    %(delays)s::interval[], %(scheduled_ats)s::timestamptz[], %(max_attempts)s::integer[],
    %(timeouts)s::interval[], %(unique_keys)s::text[]
) as e
