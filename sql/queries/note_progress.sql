select pgq.note_progress(%(ids)s::bigint[], %(leases)s::bigint[], %(progress)s::jsonb[])
