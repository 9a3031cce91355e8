-- Claims due jobs one by one, after the database has refused to have several claimed: a trigger or
-- constraint of the application, or a damaged row. Only pgq.claim calls this.
-- A job that is refused is due again after a minute, and says why in last_error; where even that is
-- refused it is passed over. Suspects are left to another look.
-- Takes: the worker; the queues; how many; the kinds (null: any); and the call's lease.
-- Returns: like pgq.claim. Locks: job rows, skipping locked ones. Relies on: jobs_pending.
create or replace function pgq.claim_singly(
    p_worker_id bigint, p_queues text[], p_limit integer, p_kinds text[], p_lease bigint
) returns table (
    id bigint,
    lease bigint,
    queue text,
    kind text,
    payload jsonb,
    priority smallint,
    scheduled_at timestamptz,
    attempts integer,
    max_attempts integer,
    timeout interval
)
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
    v_left integer := p_limit;
    v_queue text;
    v_id bigint;
begin
    set constraints all immediate;
    foreach v_queue in array p_queues loop
        for v_id in
            select j.id
            from pgq.jobs as j
            where j.shard = 0 and j.queue = v_queue and j.status = 'pending'
                and j.scheduled_at <= now()
                and (p_kinds is null or j.kind = any (p_kinds))
                and (j.losses = 0 or j.attempts + 1 < j.max_attempts)
            order by j.shard, j.queue, j.priority desc, j.scheduled_at, j.id
            limit 1000
            for update skip locked
        loop
            if v_left = 0 then
                return;
            end if;
            begin
                return query
                update pgq.jobs as j
                set status = 'running',
                    attempts = j.attempts + 1,
                    lease = p_lease # j.id,
                    worker_id = p_worker_id,
                    locked_at = now(),
                    progress = null,
                    updated_at = now()
                where j.id = v_id and j.shard = 0
                returning
                    j.id, j.lease, j.queue, j.kind, j.payload, j.priority, j.scheduled_at,
                    j.attempts, j.max_attempts, j.timeout;
                v_left := v_left - 1;
            exception
                when others then
                    if not pgq.is_fault_of_row(sqlstate) then
                        raise;
                    end if;
                    perform pgq.postpone(v_id, 'the database refuses that it runs: ' || sqlerrm);
            end;
        end loop;
    end loop;
end
$$;
