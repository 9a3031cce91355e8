select c.id, c.outcome
from pgq.cancel(%(ids)s::bigint[], %(actor)s::text) as c
