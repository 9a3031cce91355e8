-- The jobs that run under a worker, as it claimed them. Relies on jobs_running.
select
    j.id, j.lease, j.queue, j.kind, j.payload, j.priority, j.scheduled_at,
    j.attempts, j.max_attempts, j.timeout
from pgq.jobs as j
where j.shard = 0 and j.queue = any (%(queues)s::text[]) and j.worker_id = %(worker_id)s::bigint
    and j.status = 'running'
order by j.id
