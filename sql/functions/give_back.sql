-- Gives back these running jobs, whose rows the caller has locked, where the worker is marked dead,
-- has stopped, or is unknown: all of them or, with an error, none. Only pgq.give_back_lost calls this.
-- The attempt is charged. A job goes back to pending, due at once after its first loss and with
-- backoff after later ones; it fails when its attempts are used up, and is cancelled if it was
-- asked to be. It forgets its worker, so that a late finish is told that its lease was lost. The
-- sessions of the lost attempt (they bear its name, see ClaimedJob.application_name) are ended.
-- Takes: the ids; and whether all will be undone: then no session is ended, which cannot be.
-- Returns: a row a job.
-- Locks: the throughput rows of this backend's slot. Relies on: jobs_pkey, workers_pkey,
-- workers_living.
create or replace function pgq.give_back(p_ids bigint[], p_rehearsal boolean)
returns table (job_id bigint, queue text, kind text, worker_id bigint, status text)
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
    return query
    with lost as materialized (
        select j.id, j.lease, j.worker_id, j.locked_at as started_at,
            case
                when j.cancel_requested_at is not null then 'cancelled'
                when j.attempts >= j.max_attempts then 'failed'
                else 'pending'
            end as status,
            case
                when j.kill_requested_at is not null then 'killed by an operator; '
                when j.cancel_requested_at is not null then 'cancelled by an operator; '
                else ''
            end
                || 'worker lost' || coalesce(': ' || pgq.worker_name(j.worker_id), '') as error
        from pgq.jobs as j
        where j.id = any (p_ids) and j.shard = 0 and j.lease is not null
            and not exists (
                select from pgq.workers as w
                where w.id = j.worker_id and w.died_at is null and w.stopped_at is null
            )
    ),
    changed as (
        update pgq.jobs as j
        set status = l.status,
            lease = null,
            worker_id = null,
            losses = j.losses + 1,
            scheduled_at = case
                when l.status <> 'pending' then j.scheduled_at
                when j.losses = 0 then now()
                else pgq.due_after(pgq.backoff(j.attempts))
            end,
            last_error = l.error,
            finished_at = case when l.status <> 'pending' then now() end,
            updated_at = now()
        from lost as l
        where j.id = any (p_ids) and j.id = l.id and j.shard = 0 and j.lease is not null
        returning j.id, j.queue, j.kind, l.lease, l.worker_id, j.status, j.attempts, j.scheduled_at,
            l.error, l.started_at
    ),
    -- What the lost attempt's own connections still run would go on beside the next one.
    silenced as materialized (
        select pg_catalog.pg_terminate_backend(a.pid)
        from pg_catalog.pg_stat_activity as a
        where not p_rehearsal
            and a.application_name in (
                select 'pgq-job-' || c.id || '-' || lpad(to_hex(c.lease), 16, '0') from changed as c
            )
            and a.datname = pg_catalog.current_database()
            and pg_catalog.pg_has_role(a.usesysid, 'usage')
    ),
    recorded as (
        insert into pgq.attempts (job_id, attempt, worker_id, started_at, outcome, error)
        select c.id, c.attempts, c.worker_id, c.started_at, 'lost', c.error
        from changed as c
    ),
    counted as (
        insert into pgq.throughput as t (queue, minute, slot, failed, retried)
        select c.queue, date_trunc('minute', now()), pg_backend_pid() % 16,
            count(*) filter (where c.status = 'failed'),
            count(*) filter (where c.status = 'pending')
        from changed as c
        group by c.queue
        order by c.queue
        on conflict (minute, queue, slot) do update
        set failed = t.failed + excluded.failed, retried = t.retried + excluded.retried
    ),
    woken as materialized (
        select pgq.wake(d.queue, d.kind, d.jobs)
        from (
            select c.queue, c.kind, count(*) as jobs
            from changed as c
            where c.status = 'pending' and c.scheduled_at <= now()
            group by c.queue, c.kind
        ) as d
    )
    select c.id, c.queue, c.kind, c.worker_id, c.status
    from changed as c
    where (select count(*) from woken) >= 0 and (select count(*) from silenced) >= 0
    order by c.id;
end
$$;
