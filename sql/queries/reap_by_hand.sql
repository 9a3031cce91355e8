select r.job_id, r.queue, r.kind, r.worker_id, r.status, r.error
from pgq.reap_by_hand(
    %(limit)s::integer, %(seen_at)s::timestamptz, %(began_at)s::timestamptz, %(actor)s::text,
    %(rehearsal)s::boolean
) as r
