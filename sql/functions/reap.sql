-- Declares dead workers dead and gives their jobs back.
--
-- A worker is dead when its last beat is older than 4 seconds and the advisory lock that its row
-- names is held by nobody; or, whatever its lock, when it was silent for the visibility timeout.
-- Nobody is declared dead by a session younger than 5 seconds: it may be the first one after a
-- restart, a crash recovery or a promotion, when no worker could beat yet. Nor by a worker that was
-- silent itself a moment ago (see pgq.heartbeat).
-- No leader is needed: each dead worker's row is locked (skipping locked ones), its beat is read
-- again by that lock and its advisory lock is tried under it, all in one transaction with the
-- jobs. Jobs left running by workers that are marked dead, have stopped, or are unknown go too.
-- Takes: how many jobs to give back at most; call again while it returns that many. And the worker
-- that reaps (null: somebody else).
-- Refuses: any isolation but READ COMMITTED. Gives up (55P03) when the table is locked as a whole:
-- it must not hold the rows of workers, who cannot beat meanwhile, and judge them later.
-- Returns: a row a job given back, with its worker and what became of it.
-- Locks: worker rows in order of id, their advisory locks, then job rows, waiting for none of
-- them; then the throughput rows of this backend's slot.
-- Relies on: jobs_running.
create or replace function pgq.reap(p_limit integer default 1000, p_watcher bigint default null)
returns table (job_id bigint, queue text, kind text, worker_id bigint, status text)
language plpgsql
set search_path = ''
set lock_timeout = '1s'
as $$
declare
    v_worker record;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'pgq.reap needs READ COMMITTED, not %', current_setting('transaction_isolation')
            using errcode = 'invalid_transaction_state',
                hint = 'call it in a transaction of its own';
    end if;
    if pgq.session_age() >= interval '5 seconds'
        and (
            p_watcher is null
            or exists (
                select from pgq.workers as w
                where w.id = p_watcher and w.beat_at >= now() - interval '6 seconds'
                    and w.watching_since <= now() - interval '4 seconds'
            )
        )
    then
        for v_worker in
            select w.id, w.lock_key, s.silent >= s.forgiven as overdue
            from pgq.workers as w
            join pgq.silent_workers() as s on s.id = w.id
            where w.died_at is null and w.stopped_at is null
                and w.beat_at < now() - interval '4 seconds'
                and (w.lock_key is not null or s.silent >= s.forgiven)
                -- A session gets its own lock again: it must not take its own worker for dead.
                and not exists (
                    select from pg_catalog.pg_locks as l
                    where l.locktype = 'advisory' and l.pid = pg_catalog.pg_backend_pid()
                        and ((l.classid::bigint << 32) | l.objid::bigint) = w.lock_key
                )
            order by w.id
            for update of w skip locked
        loop
            if v_worker.overdue or pg_try_advisory_xact_lock(v_worker.lock_key) then
                update pgq.workers as w
                set died_at = now(), waiting = false
                where w.id = v_worker.id and w.beat_at < now() - interval '4 seconds';
            end if;
        end loop;
    end if;
    return query select r.* from pgq.give_back_lost(p_limit) as r;
end
$$;
