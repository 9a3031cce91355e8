-- Makes jobs end: like pgq.cancel, and the worker of a running job goes on to what it can do, rung
-- by rung, until the handler has ended. A job that finishes first stays done.
-- Force cancels a running job at once whoever has it: its keys are free and a late finish changes
-- nothing, but its handler may still run: its worker notices, and stops it, at its next look at
-- what runs under it, once a minute.
-- Takes: the ids; force; who asks (for the audit).
-- Returns: a row an id, with outcome: cancelled, requested, already done, already failed,
-- already cancelled, or not found; and worker_id: the live worker that was told, or that may still
-- run what force took from it.
-- Locks: job rows in order of id. Relies on: pgq.end_jobs.
create or replace function pgq.kill(
    p_ids bigint[], p_force boolean default false, p_actor text default session_user
) returns table (id bigint, outcome text, worker_id bigint)
language sql volatile set search_path = '' as $$
    select e.id, e.outcome, e.worker_id
    from pgq.end_jobs(p_ids, p_kill => true, p_force => p_force, p_actor => p_actor) as e
    order by e.id;
$$;
