-- One job with all that is kept about it, and the worker that has or had it. No row: no such job.
-- Relies on jobs_pkey.
select
    j.id, j.queue, j.kind, j.status, j.priority, j.attempts, j.max_attempts, j.snoozes, j.losses,
    j.unique_key, j.timeout, j.created_at, j.scheduled_at, j.locked_at, j.cancel_requested_at,
    j.kill_requested_at, j.finished_at, j.updated_at,
    j.worker_id, w.host as worker_host, w.pid as worker_pid,
    j.progress, j.payload, j.result, j.last_error
from pgq.jobs as j
left join pgq.workers as w on w.id = j.worker_id
where j.id = %(id)s::bigint and j.shard = 0
order by j.id
