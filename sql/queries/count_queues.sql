-- A row a queue: what waits, runs and failed, and what was done in the last hour.
-- Reads the partial indexes jobs_pending, jobs_running and jobs_failed, and the counters by minute;
-- no done or cancelled job is looked at. Each status is counted by itself: `status in (...)` fits
-- no partial index, and would read the whole table.
with pending as (
    select
        j.queue,
        count(*) filter (where j.scheduled_at <= now()) as ready,
        count(*) filter (where j.scheduled_at > now()) as scheduled,
        min(j.scheduled_at) filter (where j.scheduled_at <= now()) as oldest_ready_at
    from pgq.jobs as j
    where j.shard = 0 and j.status = 'pending'
    group by j.queue
),
running as (
    select j.queue, count(*) as running
    from pgq.jobs as j
    where j.shard = 0 and j.status = 'running'
    group by j.queue
),
dead as (
    select j.queue, count(*) as failed
    from pgq.jobs as j
    where j.shard = 0 and j.status = 'failed'
    group by j.queue
),
hour as (
    select
        t.queue,
        sum(t.done)::bigint as done_1h,
        sum(t.failed)::bigint as failed_1h,
        sum(t.retried)::bigint as retried_1h
    from pgq.throughput as t
    where t.minute > now() - interval '1 hour'
    group by t.queue
)
select
    queue,
    coalesce(pending.ready, 0) as ready,
    coalesce(pending.scheduled, 0) as scheduled,
    coalesce(running.running, 0) as running,
    coalesce(dead.failed, 0) as failed,
    coalesce(hour.done_1h, 0) as done_1h,
    coalesce(hour.failed_1h, 0) as failed_1h,
    coalesce(hour.retried_1h, 0) as retried_1h,
    pending.oldest_ready_at,
    now() - pending.oldest_ready_at as oldest_ready_age
from (select q.queue from pgq.queues as q) as q
full join pending using (queue)
full join running using (queue)
full join dead using (queue)
full join hour using (queue)
order by queue
