select k.id, k.outcome, k.worker_id
from pgq.kill(%(ids)s::bigint[], %(force)s::boolean, %(actor)s::text) as k
order by k.id
