-- Asks jobs to end: a pending job is cancelled at once; a running one is asked to, and its worker
-- hears of it at its next heartbeat. A job that finishes first stays done.
-- Takes: the ids; who asks (for the audit).
-- Returns: a row an id, with outcome: cancelled, requested, already done, already failed,
-- already cancelled, or not found.
-- Locks: job rows in order of id. Relies on: pgq.end_jobs.
create or replace function pgq.cancel(p_ids bigint[], p_actor text default session_user)
returns table (id bigint, outcome text)
language sql volatile set search_path = '' as $$
    select e.id, e.outcome
    from pgq.end_jobs(p_ids, p_kill => false, p_force => false, p_actor => p_actor) as e
    order by e.id;
$$;
