-- Claims jobs, and says what time it was: a row with the time alone, then a row a job.
select now() as looked_at, null::bigint as id, null::bigint as lease, null::text as queue,
    null::text as kind, null::jsonb as payload, null::smallint as priority,
    null::timestamptz as scheduled_at, null::integer as attempts, null::integer as max_attempts,
    null::interval as timeout
union all
select null, c.id, c.lease, c.queue, c.kind, c.payload, c.priority, c.scheduled_at, c.attempts,
    c.max_attempts, c.timeout
from pgq.claim(
    %(worker_id)s::bigint, %(queues)s::text[], %(limit)s::integer, %(kinds)s::text[],
    %(priorities)s::smallint[], %(times)s::timestamptz[], %(ids)s::bigint[],
    %(turn)s::boolean, %(singly)s::boolean
) as c
