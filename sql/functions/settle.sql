-- Ends running attempts that are not done, where the lease still holds: the one place that says
-- what becomes of a job that failed, timed out, was snoozed, handed back or cancelled.
--
-- Takes: the worker; and in parallel arrays each job's id, lease, attempt (as claimed), outcome,
-- delay, error, traceback and output (the end of what it wrote). Outcomes:
--   failed, timed out  again after the delay (null: pgq.backoff), or failed when attempts are used up
--   buried             failed for good, whatever attempts are left
--   snoozed            again after the delay, not charged; after 1,000 snoozes a failed attempt
--   handed back        again now, not charged
--   cancelled          cancelled
-- A job that was asked to cancel and would run again or fail ends cancelled instead, and where the
-- outcome has no error, with that one.
-- Returns: the ids whose lease was lost; their rows are unchanged. Safe to send again, see finish.
-- Locks: the job rows in order of id, then the throughput rows of this backend's slot.
-- Relies on: jobs_pkey.
create or replace function pgq.settle(
    p_worker_id bigint,
    p_ids bigint[],
    p_leases bigint[],
    p_attempts integer[],
    p_outcomes text[],
    p_delays interval[],
    p_errors text[],
    p_tracebacks text[],
    p_outputs text[] default null
) returns bigint[]
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_changed bigint;
begin
    with given as materialized (
        select j.id, g.lease, g.delay, g.traceback, g.output, j.locked_at as started_at, v.outcome,
            j.attempts as attempt,
            case
                when v.outcome in ('snoozed', 'handed back')
                    then case when j.kill_requested_at is null then 'cancelled' else 'killed' end
                        || ' by an operator (' || v.outcome || ')'
                when g.outcome = 'snoozed' and v.outcome = 'failed' then 'snoozed more than 1000 times'
                else coalesce(g.error, v.outcome)
            end as error,
            case
                when v.outcome = 'cancelled' then 'cancelled'
                when j.cancel_requested_at is not null then 'cancelled'
                when v.outcome in ('snoozed', 'handed back') then 'pending'
                when v.outcome = 'buried' or j.attempts >= j.max_attempts then 'failed'
                else 'pending'
            end as status
        from unnest(p_ids, p_leases, p_outcomes, p_delays, p_errors, p_tracebacks, p_outputs)
            as g (id, lease, outcome, delay, error, traceback, output)
        join pgq.jobs as j
            on j.id = any (p_ids) and j.id = g.id and j.shard = 0 and j.lease = g.lease
        cross join lateral (
            select
                case
                    when g.outcome = 'snoozed' and j.snoozes >= 1000 then 'failed'
                    when g.outcome in
                        ('failed', 'timed out', 'buried', 'snoozed', 'handed back', 'cancelled')
                        then g.outcome
                    else 'failed'
                end as outcome
        ) as v
        order by j.id
        for update of j
    ),
    changed as (
        update pgq.jobs as j
        set status = g.status,
            lease = null,
            attempts = j.attempts - (g.outcome in ('snoozed', 'handed back'))::integer,
            snoozes = j.snoozes + (g.outcome = 'snoozed')::integer,
            scheduled_at = case
                when g.status <> 'pending' then j.scheduled_at
                when g.outcome = 'handed back' then now()
                else pgq.due_after(coalesce(g.delay, pgq.backoff(j.attempts)))
            end,
            last_error = case
                when g.outcome in ('snoozed', 'handed back') and g.status = 'pending'
                    then j.last_error
                else g.error
            end,
            finished_at = case when g.status <> 'pending' then now() end,
            updated_at = now()
        from given as g
        where j.id = any (p_ids) and j.id = g.id and j.shard = 0 and j.lease = g.lease
        returning j.id, j.queue, j.kind, j.status, j.scheduled_at, g.attempt,
            g.outcome, g.error, g.traceback, g.output, g.started_at
    ),
    recorded as (
        insert into pgq.attempts
            (job_id, attempt, worker_id, started_at, outcome, error, traceback, output)
        select c.id, c.attempt, p_worker_id, c.started_at,
            case
                when c.outcome = 'buried' then 'failed'
                when c.outcome in ('snoozed', 'handed back') then 'cancelled'
                else c.outcome
            end,
            c.error, c.traceback, c.output
        from changed as c
        where c.outcome not in ('snoozed', 'handed back') or c.status = 'cancelled'
    ),
    counted as (
        insert into pgq.throughput as t (queue, minute, slot, failed, retried)
        select c.queue, date_trunc('minute', now()), pg_backend_pid() % 16,
            count(*) filter (where c.status = 'failed'),
            count(*) filter (where c.status = 'pending' and c.outcome in ('failed', 'timed out'))
        from changed as c
        group by c.queue
        order by c.queue
        on conflict (minute, queue, slot) do update
        set failed = t.failed + excluded.failed,
            retried = t.retried + excluded.retried
    ),
    woken as (
        select pgq.wake(d.queue, d.kind, d.jobs)
        from (
            select c.queue, c.kind, count(*) as jobs
            from changed as c
            where c.status = 'pending' and c.scheduled_at <= now()
            group by c.queue, c.kind
        ) as d
    )
    select count(*) + 0 * (select count(*) from woken) into v_changed from changed;

    if v_changed = cardinality(p_ids) then
        return '{}';
    end if;
    return array(
        select g.id
        from unnest(p_ids, p_attempts, p_outcomes) as g (id, attempt, outcome)
        left join pgq.jobs as j on j.id = any (p_ids) and j.id = g.id and j.shard = 0
            and j.lease is null and j.worker_id = p_worker_id
            and j.attempts = g.attempt - (g.outcome in ('snoozed', 'handed back'))::integer
        where j.id is null
    );
end
$$;
