select h.alive, h.cancelled, h.overdue, h.reap_in
from pgq.heartbeat(%(worker_id)s::bigint, %(lock_key)s::bigint, %(draining)s::boolean) as h
