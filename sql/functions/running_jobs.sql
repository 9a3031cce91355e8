-- What runs under a worker, as it was claimed: a worker asks when the reply to a claim was lost.
-- Returns: a row a job like pgq.claim, in order of id. Locks: none.
-- Relies on: jobs_running. A function because only a function can pin its plan: statistics of a
-- small table would have the whole of a large one read.
create or replace function pgq.running_jobs(p_worker_id bigint, p_queues text[])
returns table (
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
language plpgsql stable
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    return query
    with found as materialized (
        select
            j.id, j.lease, j.queue, j.kind, j.payload, j.priority, j.scheduled_at,
            j.attempts, j.max_attempts, j.timeout
        from pgq.jobs as j
        where j.queue = any (p_queues) and j.worker_id = p_worker_id and j.status = 'running'
    )
    select f.* from found as f order by f.id;
end
$$;
