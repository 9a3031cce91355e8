-- Gives back running jobs whose worker is marked dead, has stopped, or is unknown. Only reaps call
-- this.
-- Takes: how many at most; and which of the jobs that the database refused to give back are tried
-- again: those refused before this instant; and whether the caller will undo it all.
-- Returns: a row a job, with what became of it. One that the database refuses to change (a trigger
-- or a constraint of the application, a payload beyond a lowered limit, a damaged row) stays
-- running, and comes with the error: it is noted in pgq.refusals, so that it neither undoes the
-- others nor stands in front of them at the next call.
-- Refuses: any isolation but READ COMMITTED.
-- Locks: job rows, skipping locked ones (a finish under way decides those); the throughput rows of
-- this backend's slot, by queue; then rows of pgq.refusals, one for each refused job.
-- In two statements: what is locked is judged anew, by a snapshot taken after. In one, a job that
-- another reaper gave back and a live worker claimed meanwhile would be read as it is now beside
-- the workers as they were, and that worker be taken for unknown.
-- Relies on: jobs_running, in its order (to want the order of id would be an invitation to walk
-- jobs_pkey over every finished job), then jobs_pkey; workers_living, since the dead may be many.
create or replace function pgq.give_back_lost(
    p_limit integer, p_refused_before timestamptz, p_rehearsal boolean default false
) returns table (
    job_id bigint, queue text, kind text, worker_id bigint, status text, error text
)
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_ids bigint[];
    v_refused bigint[] := '{}';
    v_errors text[] := '{}';
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'a reap needs READ COMMITTED, not %', current_setting('transaction_isolation')
            using errcode = 'invalid_transaction_state',
                hint = 'call it in a transaction of its own';
    end if;
    v_ids := array(
        select j.id
        from pgq.jobs as j
        where j.shard = 0 and j.status = 'running'
            and not exists (
                select from pgq.workers as w
                where w.id = j.worker_id and w.died_at is null and w.stopped_at is null
            )
            and not exists (
                select from pgq.refusals as r
                where r.job_id = j.id and r.shard = 0 and r.refused_at >= p_refused_before
            )
        order by j.queue, j.worker_id
        limit p_limit
        for update of j skip locked
    );
    -- What the application checks at commit would undo all; checked now, it is one row's refusal.
    set constraints all immediate;
    begin
        return query select g.*, null::text from pgq.give_back(v_ids, p_rehearsal) as g;
        return;
    exception
        when others then
            if not pgq.is_fault_of_row(sqlstate) then
                raise;
            end if;
    end;
    foreach job_id in array v_ids loop
        begin
            return query select g.*, null::text from pgq.give_back(array[job_id], p_rehearsal) as g;
        exception
            when others then
                if not pgq.is_fault_of_row(sqlstate) then
                    raise;
                end if;
                v_refused := v_refused || job_id;
                v_errors := v_errors || left(sqlerrm, 2000);
        end;
    end loop;
    insert into pgq.refusals as r (job_id, error)
    select u.id, u.error from unnest(v_refused, v_errors) as u (id, error)
    on conflict (job_id, shard) do update
    set error = excluded.error, refused_at = excluded.refused_at;
    return query
    select j.id, j.queue, j.kind, j.worker_id, j.status, u.error
    from unnest(v_refused, v_errors) as u (id, error)
    join pgq.jobs as j on j.id = any (v_refused) and j.id = u.id and j.shard = 0;
end
$$;
