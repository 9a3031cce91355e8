-- The newest jobs that match, of any status or a finished one; a filter that is null matches all.
-- Walks jobs_pkey backwards until it has enough. Questions about live jobs or dead letters have
-- statements of their own (list_pending_jobs, list_running_jobs, list_failed_jobs): a plan made
-- for a status that is a parameter cannot use a partial index.
select
    j.id, j.queue, j.kind, j.status, j.priority, j.attempts, j.max_attempts,
    j.created_at, j.scheduled_at, j.finished_at, j.worker_id, j.last_error
from pgq.jobs as j
where j.shard = 0
    and (%(status)s::text is null or j.status = %(status)s::text)
    and (%(queue)s::text is null or j.queue = %(queue)s::text)
    and (%(kind)s::text is null or j.kind = %(kind)s::text)
    and (%(error)s::text is null or position(lower(%(error)s::text) in lower(j.last_error)) > 0)
    and (%(since)s::timestamptz is null or j.created_at >= %(since)s::timestamptz)
    and (%(age)s::interval is null or j.created_at >= now() - %(age)s::interval)
order by j.id desc
limit %(limit)s::integer
