-- Fails (55P03) while a claim of this worker is under way: each holds a key share of its row. It does
-- not wait in the row's queue, where the worker's own heartbeats would wait behind it.
select w.id from pgq.workers as w where w.id = %(worker_id)s::bigint order by w.id for update nowait
