-- Claims jobs, and says what time it was; with nothing to claim, one row of nulls beside the time.
select now() as looked_at, c.*
from (values (true)) as one
left join pgq.claim(
    %(worker_id)s::bigint, %(queues)s::text[], %(limit)s::integer, %(kinds)s::text[],
    %(priorities)s::smallint[], %(times)s::timestamptz[], %(ids)s::bigint[],
    %(turn)s::boolean
) as c on true
