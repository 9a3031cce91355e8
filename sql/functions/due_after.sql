-- The time after a delay from now, kept within what jobs.scheduled_at may hold, so that no delay
-- whatever can keep a job from leaving `running`. A negative delay is none. Locks: none.
create or replace function pgq.due_after(p_delay interval) returns timestamptz
language sql stable parallel safe set search_path = ''
return now() + least(greatest(p_delay, interval '0'), interval '36500 days');
