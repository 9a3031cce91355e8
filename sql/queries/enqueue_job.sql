select e.id, e.duplicate
from pgq.enqueue(
    %(kind)s::text, %(payload)s::jsonb, %(queue)s::text, %(priority)s::integer,
    %(delay)s::interval, %(scheduled_at)s::timestamptz, %(max_attempts)s::integer,
    %(timeout)s::interval, %(unique_key)s::text
) as e
