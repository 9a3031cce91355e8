select r.job_id, r.queue, r.kind, r.worker_id, r.status
from pgq.reap(%(limit)s::integer, %(watcher)s::bigint) as r
