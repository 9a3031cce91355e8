-- The newest pending jobs that match; a filter that is null matches all.
-- Relies on jobs_pending, which alone gives the ids, and jobs_pkey, by which they are looked at,
-- newest first, until enough match; no finished job is read, however stale the statistics are.
-- The ids are ordered by an expression and fenced by `offset 0`: else the planner may walk
-- jobs_pkey backwards through all finished jobs, or read the whole table.
select
    j.id, j.queue, j.kind, j.status, j.priority, j.attempts, j.max_attempts,
    j.created_at, j.scheduled_at, j.finished_at, j.worker_id, j.last_error
from (
    select p.id, p.id + 0 as place
    from pgq.jobs as p
    where p.shard = 0 and p.status = 'pending'
        and (%(queue)s::text is null or p.queue = %(queue)s::text)
    order by place desc
    offset 0
) as newest
cross join lateral (
    select one.* from pgq.jobs as one where one.id = newest.id and one.shard = 0 offset 0
) as j
where (%(kind)s::text is null or j.kind = %(kind)s::text)
    and (%(error)s::text is null or position(lower(%(error)s::text) in lower(j.last_error)) > 0)
    and (%(since)s::timestamptz is null or j.created_at >= %(since)s::timestamptz)
    and (%(age)s::interval is null or j.created_at >= now() - %(age)s::interval)
order by newest.place desc
limit %(limit)s::integer
