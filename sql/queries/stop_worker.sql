select pgq.stop_worker(%(worker_id)s::bigint)
