-- The workers that live and, of those that ended, the last hundred: dead ones of this last hour, or
-- `all`, which are those of the last day. Everything is judged by the server's clock.
-- Relies on workers_living and workers_ended, and on jobs_running for what each of them runs.
with held as materialized (
    select h.lock_key from pgq.held_locks() as h
),
ended as (
    select w.*
    from pgq.workers as w
    where coalesce(w.died_at, w.stopped_at) > now() - interval '1 day'
        and (%(all)s::boolean or w.died_at > now() - interval '1 hour')
        and (%(queue)s::text is null or %(queue)s::text = any (w.queues))
        and (%(host)s::text is null or w.host = %(host)s::text)
    order by coalesce(w.died_at, w.stopped_at) desc
    limit 100
),
living as (
    select w.*
    from pgq.workers as w
    where w.died_at is null and w.stopped_at is null
        and (%(queue)s::text is null or %(queue)s::text = any (w.queues))
        and (%(host)s::text is null or w.host = %(host)s::text)
),
facts as (
    select w.*,
        greatest(clock_timestamp() - w.beat_at, interval '0') as beat_age,
        (
            select count(*)
            from pgq.jobs as j
            where j.queue = any (w.queues) and j.worker_id = w.id and j.status = 'running'
        ) as running,
        case when w.lock_key is not null then w.lock_key in (select h.lock_key from held as h) end
        as lock_held
    from (select l.* from living as l union all select e.* from ended as e) as w
)
select
    f.id,
    case
        when f.died_at is not null then 'dead'
        when f.stopped_at is not null then 'stopped'
        when f.beat_age > interval '4 seconds' then 'silent'
        when f.trouble is not null then 'trouble'
        when f.draining_at is not null then 'draining'
        when f.running > 0 then 'working'
        else 'idle'
    end as state,
    f.queues, f.kinds, f.running, f.concurrency, f.beat_age, f.lock_held, f.trouble,
    f.host, f.pid, f.version, f.started_at, f.beat_at, f.draining_at, f.stopped_at, f.died_at
from facts as f
order by f.died_at is not null or f.stopped_at is not null, f.id
