-- Writes what handlers said of their progress, where the lease still holds.
-- Takes: in parallel arrays each job's id, lease and progress.
-- Returns: nothing; a job that has ended meanwhile is left as it is.
-- Locks: the job rows in order of id, without waiting: a heartbeat must not stand still for a row
-- that somebody else has locked, and the next word will do. Gives up (55P03) when the table is
-- locked as a whole. Relies on: jobs_pkey.
create or replace function pgq.note_progress(p_ids bigint[], p_leases bigint[], p_progress jsonb[])
returns void
language plpgsql
set search_path = ''
set lock_timeout = '300ms'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
    with held as materialized (
        select j.id, g.lease, g.progress
        from unnest(p_ids, p_leases, p_progress) as g (id, lease, progress)
        join pgq.jobs as j
            on j.id = any (p_ids) and j.id = g.id and j.shard = 0 and j.lease = g.lease
        order by j.id
        for no key update of j skip locked
    )
    update pgq.jobs as j
    set progress = h.progress, updated_at = now()
    from held as h
    where j.id = any (p_ids) and j.id = h.id and j.shard = 0 and j.lease = h.lease;
end
$$;
