-- The leases of the jobs that run under a worker.
select r.lease
from pgq.running_jobs(%(worker_id)s::bigint, %(queues)s::text[]) as r
order by r.id
