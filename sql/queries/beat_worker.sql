select h.alive, h.cancelled, h.killed, h.overdue, h.reap_in, h.forgiven
from pgq.heartbeat(
    %(worker_id)s::bigint, %(lock_key)s::bigint, %(draining)s::boolean, %(trouble)s::text
) as h
