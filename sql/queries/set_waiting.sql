select pgq.set_waiting(%(worker_id)s::bigint, %(waiting)s::boolean)
