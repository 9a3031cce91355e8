select r.id, r.outcome, r.holder, r.worker_id
from pgq.requeue(%(ids)s::bigint[], %(force)s::boolean, %(actor)s::text) as r
order by r.id
