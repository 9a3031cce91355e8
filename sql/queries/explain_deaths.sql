-- What tells that these workers are gone: when each was heard last, how it ended, whether anybody
-- holds its lock (null: it had none), and how long its silence would have been forgiven.
-- No row: nothing is known of the worker.
select
    w.id, w.host, w.pid, w.died_at, w.stopped_at,
    w.died_at - w.beat_at as silent,
    case
        when w.lock_key is not null
            then w.lock_key in (select h.lock_key from pgq.held_locks() as h)
    end as lock_held,
    pgq.forgiven_silence(w.queues) as forgiven
from pgq.workers as w
where w.id = any (%(ids)s::bigint[])
order by w.id
