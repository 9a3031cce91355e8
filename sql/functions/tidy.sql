-- The upkeep that any worker does now and then: forgets workers that ended a day ago, counters older
-- than 30 days, and refusals that were not repeated for an hour. One at a time; a second caller does
-- nothing.
-- Returns: nothing. Locks: an advisory lock, then the rows it deletes.
-- Relies on: throughput_pkey, refusals_pkey, workers_ended, jobs_running.
create or replace function pgq.tidy() returns void
language plpgsql
set search_path = ''
set lock_timeout = '1s'
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    if not pg_try_advisory_xact_lock(hashtextextended('pgq.tidy', 0)) then
        return;
    end if;
    delete from pgq.throughput as t where t.minute < now() - interval '30 days';
    delete from pgq.refusals as r where r.refused_at < now() - interval '1 hour';
    -- A worker whose jobs have not all been given back yet must stay, to be named in their story.
    delete from pgq.workers as w
    where coalesce(w.died_at, w.stopped_at) < now() - interval '1 day'
        and not exists (
            select from pgq.jobs as j
            where j.queue = any (w.queues) and j.worker_id = w.id
                and j.status = 'running'
        );
end
$$;
