-- Marks dead workers dead. Only reaps call this.
-- A worker is dead when its last beat is older than 4 seconds and the advisory lock that its row
-- names is held by nobody; or, whatever its lock, when it was silent for the visibility timeout.
-- Nobody is declared dead by a session younger than 5 seconds: it may be the first one after a
-- restart, a crash recovery or a promotion, when no worker could beat yet.
-- No leader is needed: each dead worker's row is locked (skipping locked ones), its beat is read
-- again by that lock and its advisory lock is tried under it.
-- Returns: nothing. Locks: worker rows in order of id and their advisory locks, waiting for none.
-- Relies on: workers_living.
create or replace function pgq.declare_dead() returns void
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_worker record;
begin
    if pgq.session_age() < interval '5 seconds' then
        return;
    end if;
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
            begin
                update pgq.workers as w
                set died_at = now(), waiting = false
                where w.id = v_worker.id and w.beat_at < now() - interval '4 seconds';
            exception
                -- The application's own trigger or constraint: the others are found all the same.
                when raise_exception or integrity_constraint_violation or data_exception then
                    raise warning 'worker % could not be marked dead: %', v_worker.id, sqlerrm;
            end;
        end if;
    end loop;
end
$$;
