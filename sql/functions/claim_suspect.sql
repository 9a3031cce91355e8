-- Claims one suspect: a job that lost its worker before and is about to take its last attempt.
-- Only pgq.claim calls this. A worker runs one suspect at a time, so that the jobs claimed beside
-- it are not charged for a death that was not theirs more than once.
-- Returns: like pgq.claim, at most one row. Locks: one job row, skipping locked ones.
-- Relies on: jobs_suspect, jobs_running.
create or replace function pgq.claim_suspect(
    p_worker_id bigint, p_queues text[], p_kinds text[], p_lease bigint
) returns table (
    id bigint,
    lease bigint,
    queue text,
    kind text,
    payload jsonb,
    priority smallint,
    scheduled_at timestamptz,
    attempts integer,
    max_attempts integer,
    timeout interval
)
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
    perform from pgq.jobs as j
    where j.status = 'pending' and j.losses > 0
    order by j.queue, j.scheduled_at, j.id
    limit 1;
    if not found then
        return;
    end if;
    return query
    with candidate as materialized (
        select j.id
        from pgq.jobs as j
        where j.shard = 0 and j.queue = any (p_queues) and j.status = 'pending'
            and j.losses > 0 and j.attempts + 1 >= j.max_attempts
            and j.scheduled_at <= now()
            and (p_kinds is null or j.kind = any (p_kinds))
            and not exists (
                select from pgq.jobs as r
                where r.shard = 0 and r.queue = any (p_queues) and r.worker_id = p_worker_id
                    and r.status = 'running' and r.losses > 0 and r.attempts >= r.max_attempts
            )
        order by j.queue, j.scheduled_at, j.id
        limit 1
        for update skip locked
    )
    update pgq.jobs as j
    set status = 'running',
        attempts = j.attempts + 1,
        lease = p_lease # j.id,
        worker_id = p_worker_id,
        locked_at = now(),
        progress = null,
        updated_at = now()
    where j.id = (select c.id from candidate as c) and j.shard = 0
    returning
        j.id, j.lease, j.queue, j.kind, j.payload, j.priority, j.scheduled_at,
        j.attempts, j.max_attempts, j.timeout;
end
$$;
