-- Declares dead workers dead (see pgq.declare_dead) and gives their jobs back, in one transaction;
-- and jobs left running by workers that are marked dead, have stopped, or are unknown.
-- A worker that was silent itself a moment ago declares nobody dead (see pgq.heartbeat).
-- Takes: how many jobs to give back at most; call again while it returns that many. And the worker
-- that reaps (null: somebody else).
-- Refuses: any isolation but READ COMMITTED. Gives up (55P03) when the table is locked as a whole:
-- it must not hold the rows of workers, who cannot beat meanwhile, and judge them later.
-- Returns: a row a job, with its worker and what became of it; one that could not be given back is
-- running still, and has the error. It is tried again after a minute.
-- Locks: worker rows in order of id, their advisory locks, then job rows, waiting for none of
-- them; then the throughput rows of this backend's slot; then rows of pgq.refusals.
-- Relies on: jobs_running.
create or replace function pgq.reap(p_limit integer default 1000, p_watcher bigint default null)
returns table (
    job_id bigint, queue text, kind text, worker_id bigint, status text, error text
)
language plpgsql
set search_path = ''
set lock_timeout = '1s'
as $$
begin
    if p_watcher is null or exists (
        select from pgq.workers as w
        where w.id = p_watcher and w.beat_at >= now() - interval '6 seconds'
            and w.watching_since <= now() - interval '4 seconds'
    ) then
        perform pgq.declare_dead();
    end if;
    return query select r.* from pgq.give_back_lost(p_limit, now() - interval '1 minute') as r;
end
$$;
