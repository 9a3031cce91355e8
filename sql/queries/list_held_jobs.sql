-- The jobs that run under a worker, as it claimed them.
select r.*
from pgq.running_jobs(%(worker_id)s::bigint, %(queues)s::text[]) as r
order by r.id
