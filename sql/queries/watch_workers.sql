-- A look before a reap: the clock, the age of this session, and the last beat of each worker that
-- seems dead: its lock is gone, or it was silent for longer than is forgiven. Relies on
-- workers_living.
with held as materialized (
    select h.lock_key from pgq.held_locks() as h
)
select
    clock_timestamp() as at,
    pgq.session_age() as session_age,
    coalesce(array_agg(w.beat_at order by w.beat_at), '{}') as suspects
from pgq.workers as w
where w.died_at is null and w.stopped_at is null
    and (
        (w.lock_key is not null and w.lock_key not in (select h.lock_key from held as h))
        or (
            w.beat_at < now() - interval '2.2 seconds'
            and now() - w.beat_at >= pgq.forgiven_silence(w.queues)
        )
    )
