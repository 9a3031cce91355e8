select r.id, r.outcome, r.holder
from pgq.requeue(%(ids)s::bigint[], %(force)s::boolean, %(actor)s::text) as r
order by r.id
