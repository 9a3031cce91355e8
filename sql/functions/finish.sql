-- Marks running jobs done, where the lease still holds.
--
-- Takes: the worker; and in parallel arrays each job's id, lease, attempt (as claimed), result
-- (null: none) and a note (null: none) that says why a result could not be kept.
-- Returns: the ids whose lease was lost; their rows are unchanged. Empty when all were applied.
-- Sent again after a lost reply it applies nothing twice: leaving `running` clears the lease, and
-- a row that is not running and whose worker and attempt are the caller's counts as applied.
-- Locks: the job rows in order of id, then the throughput rows of this backend's slot.
-- Relies on: jobs_pkey. Names (id, lease), never the status: a plan over the partial indexes on
-- status would walk every running job. The array bounds the rows read, whatever the join
-- (sql/README.md, "Plans").
create or replace function pgq.finish(
    p_worker_id bigint,
    p_ids bigint[],
    p_leases bigint[],
    p_attempts integer[],
    p_results jsonb[] default null,
    p_notes text[] default null
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
    with changed as (
        update pgq.jobs as j
        set status = 'done',
            lease = null,
            result = g.result,
            last_error = g.note,
            cancel_requested_at = null,
            kill_requested_at = null,
            finished_at = now(),
            updated_at = now()
        from (
            select u.id, u.lease, u.result, u.note
            from unnest(p_ids, p_leases, p_results, p_notes) as u (id, lease, result, note)
            order by u.id
        ) as g
        where j.id = any (p_ids) and j.id = g.id and j.shard = 0 and j.lease = g.lease
        returning j.queue, j.scheduled_at, j.locked_at
    ),
    grouped as (
        select
            c.queue,
            pgq.histogram_slot(c.locked_at - c.scheduled_at) as wait,
            pgq.histogram_slot(now() - c.locked_at) as run,
            count(*) as jobs
        from changed as c
        group by 1, 2, 3
    ),
    counted as (
        insert into pgq.throughput as t (queue, minute, slot, done, wait_histogram, run_histogram)
        select
            g.queue, date_trunc('minute', now()), pg_backend_pid() % 16, sum(g.jobs),
            (select array_agg(coalesce(h.jobs, 0) order by i) from generate_series(1, 28) as i
                left join (select w.wait, sum(w.jobs) as jobs from grouped as w
                    where w.queue = g.queue group by 1) as h on h.wait = i),
            (select array_agg(coalesce(h.jobs, 0) order by i) from generate_series(1, 28) as i
                left join (select r.run, sum(r.jobs) as jobs from grouped as r
                    where r.queue = g.queue group by 1) as h on h.run = i)
        from grouped as g
        group by g.queue
        order by g.queue
        on conflict (minute, queue, slot) do update
        set done = t.done + excluded.done,
            wait_histogram = pgq.add_arrays(t.wait_histogram, excluded.wait_histogram),
            run_histogram = pgq.add_arrays(t.run_histogram, excluded.run_histogram)
    )
    select coalesce(sum(g.jobs), 0) into v_changed from grouped as g;

    if v_changed = cardinality(p_ids) then
        return '{}';
    end if;
    return array(
        select g.id
        from unnest(p_ids, p_attempts) as g (id, attempt)
        left join pgq.jobs as j on j.id = any (p_ids) and j.id = g.id and j.shard = 0
            and j.lease is null and j.worker_id = p_worker_id and j.attempts = g.attempt
        where j.id is null
    );
end
$$;
