select r.job_id, r.queue, r.kind, r.worker_id, r.status, r.error
from pgq.reap(%(limit)s::integer, %(watcher)s::bigint) as r
