-- How far jobs that were to be killed have come, and the worker of each. `told`: the wish still
-- stands; a requeue takes it back. Relies on jobs_pkey.
select
    j.id, j.status, j.kill_requested_at is not null as told, j.last_error,
    j.worker_id, w.host, w.pid,
    greatest(clock_timestamp() - w.beat_at, interval '0') as beat_age,
    w.trouble
from pgq.jobs as j
left join pgq.workers as w on w.id = j.worker_id
where j.id = any (%(ids)s::bigint[]) and j.shard = 0
order by j.id
