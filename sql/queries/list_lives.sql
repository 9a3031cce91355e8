-- The jobs that have run longest under a worker that is not dead, and what tells that it lives.
-- Relies on jobs_running: reads what runs, and no finished job.
with held as materialized (
    select h.lock_key from pgq.held_locks() as h
)
select
    j.id, w.id as worker_id, w.host, w.pid,
    greatest(clock_timestamp() - w.beat_at, interval '0') as silent,
    case when w.lock_key is not null then w.lock_key in (select h.lock_key from held as h) end
        as lock_held,
    pgq.forgiven_silence(w.queues) as forgiven
from pgq.jobs as j
join pgq.workers as w on w.id = j.worker_id
where j.shard = 0 and j.status = 'running' and w.died_at is null and w.stopped_at is null
order by j.locked_at, j.id
limit %(limit)s::integer
