-- The newest running jobs that match; a filter that is null matches all.
-- Relies on jobs_running: reads what runs, and no finished job. Ordered by an expression for the
-- reason given in list_pending_jobs.
select
    j.id, j.queue, j.kind, j.status, j.priority, j.attempts, j.max_attempts,
    j.created_at, j.scheduled_at, j.finished_at, j.worker_id, j.last_error
from pgq.jobs as j
where j.shard = 0
    and j.status = 'running'
    and (%(queue)s::text is null or j.queue = %(queue)s::text)
    and (%(kind)s::text is null or j.kind = %(kind)s::text)
    and (%(error)s::text is null or position(lower(%(error)s::text) in lower(j.last_error)) > 0)
    and (%(since)s::timestamptz is null or j.created_at >= %(since)s::timestamptz)
    and (%(age)s::interval is null or j.created_at >= now() - %(age)s::interval)
order by j.id + 0 desc
limit %(limit)s::integer
