-- The attempts of one job that were charged and did not succeed, oldest first.
-- Relies on attempts_pkey.
select
    a.attempt, a.outcome, a.worker_id, a.started_at, a.finished_at, a.error, a.traceback,
    a.output
from pgq.attempts as a
where a.job_id = %(id)s::bigint and a.shard = 0
order by a.id
