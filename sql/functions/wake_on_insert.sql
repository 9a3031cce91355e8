-- The statement trigger that wakes workers, however the jobs came in (enqueue, INSERT, COPY).
-- Once per statement, for due jobs only. Locks: none before commit. Relies on: workers_living.
create or replace function pgq.wake_on_insert() returns trigger
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    if exists (
        select from pgq.workers as w
        where w.waiting and w.died_at is null and w.stopped_at is null
    ) then
        perform pgq.wake(n.queue, n.kind, count(*))
        from inserted as n
        where n.status = 'pending' and n.scheduled_at <= now()
        group by n.queue, n.kind;
    end if;
    return null;
end
$$;

create or replace trigger jobs_wake after insert on pgq.jobs
    referencing new table as inserted
    for each statement execute function pgq.wake_on_insert();
