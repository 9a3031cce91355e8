-- A look before a reap: the clock, the age of this session, how many workers seem dead (their lock
-- is gone, or they were silent for longer than is forgiven), and how long the one of them that beat
-- last has been silent. Relies on workers_living.
with held as materialized (
    select h.lock_key from pgq.held_locks() as h
)
select
    clock_timestamp() as at,
    pgq.session_age() as session_age,
    count(*) as suspects,
    min(clock_timestamp() - w.beat_at) as silent
from pgq.workers as w
where w.died_at is null and w.stopped_at is null
    and (
        (w.lock_key is not null and w.lock_key not in (select h.lock_key from held as h))
        or (
            w.beat_at < now() - interval '2.2 seconds'
            and now() - w.beat_at >= pgq.forgiven_silence(w.queues)
        )
    )
