-- Claims due jobs for a worker: at most p_limit, in order of priority, time due and arrival.
--
-- Takes: the worker; the queues in the order to look; the kinds it can run (null: any); and
-- optionally where to start. Without starting places it makes a full look: over every priority
-- of each queue, from the start. With them (four parallel arrays: queue, priority, time, id) it
-- looks only there: a claimer that remembers where its last claim ended does not walk over the
-- dead index entries of finished jobs again. The caller keeps its places a second behind the time
-- of its last look, for jobs that commit late, and makes a full look now and then. Idle workers of
-- a queue take turns at that: with p_turn, places that gave nothing are followed by a full look at
-- the queues at which no other one looks at this moment.
-- p_singly: one by one, when the database has refused a claim: see pgq.claim_singly.
-- Returns: the claimed jobs with their new lease. attempts counts the one that now begins.
-- Refuses: a worker that is unknown or declared dead (PGQ01), any isolation but READ COMMITTED.
-- Locks: an advisory lock of the worker (shared); with p_turn one a queue, by trying; job rows,
-- skipping locked ones; then the worker's row (key share, against a reaper).
-- Relies on: jobs_pending, jobs_suspect. The plan is pinned; the materialized CTE keeps the
-- claim at its limit under any plan, which `id in (select ... limit n for update)` does not; and
-- the rows are named by an array and not joined, since a join has plans that read the whole table
-- (sql/README.md, "Plans").
create or replace function pgq.claim(
    p_worker_id bigint,
    p_queues text[],
    p_limit integer,
    p_kinds text[] default null,
    p_priorities smallint[] default null,
    p_times timestamptz[] default null,
    p_ids bigint[] default null,
    p_turn boolean default false,
    p_singly boolean default false
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
set plan_cache_mode = force_generic_plan
as $$
declare
    v_full boolean := p_priorities is null;
    v_queues text[] := p_queues;
    -- One random number a call, distinct for each job: (id, lease) names one claim of one job.
    v_lease constant bigint :=
        hashtextextended(gen_random_uuid()::text, 0);
    v_left integer := p_limit;
    v_place integer := 1;
    v_queue text;
    v_priority smallint;
    v_at timestamptz;
    v_id bigint;
    v_claimed integer;
    v_alive boolean;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'pgq.claim needs READ COMMITTED, not %', current_setting('transaction_isolation')
            using errcode = 'invalid_transaction_state',
                hint = 'call it in a transaction of its own';
    end if;
    -- For a worker that lost the reply and wants to know when this claim is over.
    perform pg_advisory_xact_lock_shared(hashtextextended('pgq.claim', p_worker_id));
    perform from pgq.workers as w
    where w.id = p_worker_id and w.died_at is null and w.stopped_at is null;
    v_alive := found;

    if v_alive and p_singly then
        return query
        select s.*
        from pgq.claim_singly(p_worker_id, p_queues, p_limit, p_kinds, v_lease) as s;
        get diagnostics v_claimed = row_count;
        v_left := v_left - v_claimed;
    end if;
    while v_alive and not p_singly loop
        if v_full and v_left > 0 then
            return query select s.* from pgq.claim_suspect(p_worker_id, p_queues, p_kinds, v_lease) as s;
            get diagnostics v_claimed = row_count;
            v_left := v_left - v_claimed;
        end if;

        while v_left > 0 and v_place <= cardinality(v_queues) loop
            v_queue := v_queues[v_place];
            if v_full then
                -- The first pending job of the next lower priority: where to start there.
                select j.priority, j.scheduled_at, j.id into v_priority, v_at, v_id
                from pgq.jobs as j
                where j.shard = 0 and j.queue = v_queue and j.status = 'pending'
                    and j.priority < coalesce(v_priority::integer, 32768)
                order by j.shard, j.queue, j.priority desc, j.scheduled_at, j.id
                limit 1;
                if not found then
                    v_priority := null;
                    v_place := v_place + 1;
                    continue;
                end if;
            else
                v_priority := p_priorities[v_place];
                v_at := p_times[v_place];
                v_id := p_ids[v_place];
                v_place := v_place + 1;
            end if;

            return query
            with candidates as materialized (
                select j.id
                from pgq.jobs as j
                where j.shard = 0 and j.queue = v_queue and j.status = 'pending'
                    and j.priority = v_priority
                    and (j.scheduled_at, j.id) >= (v_at, v_id)
                    and j.scheduled_at <= now()
                    and (p_kinds is null or j.kind = any (p_kinds))
                    and (j.losses = 0 or j.attempts + 1 < j.max_attempts)
                order by j.shard, j.queue, j.priority desc, j.scheduled_at, j.id
                limit v_left
                for update skip locked
            ),
            claimed as (
                update pgq.jobs as j
                set status = 'running',
                    attempts = j.attempts + 1,
                    lease = v_lease # j.id,
                    worker_id = p_worker_id,
                    locked_at = now(),
                    progress = null,
                    updated_at = now()
                where j.id = any (array(select c.id from candidates as c)) and j.shard = 0
                returning
                    j.id, j.lease, j.queue, j.kind, j.payload, j.priority, j.scheduled_at,
                    j.attempts, j.max_attempts, j.timeout
            )
            select c.* from claimed as c order by c.scheduled_at, c.id;
            get diagnostics v_claimed = row_count;
            v_left := v_left - v_claimed;
        end loop;

        exit when v_full or not p_turn or v_left < p_limit;
        v_full := true;
        v_place := 1;
        v_priority := null;
        v_queues := array(
            select u.queue
            from unnest(p_queues) with ordinality as u (queue, place)
            group by u.queue
            having pg_try_advisory_xact_lock(hashtextextended('pgq.look ' || u.queue, 0))
            order by min(u.place)
        );
    end loop;

    -- With what was claimed in hand: a reaper that comes now passes this worker by; one that came
    -- before has marked it dead, and the claim is undone. A look that found nothing writes nothing.
    if v_alive and v_left < p_limit then
        perform from pgq.workers as w
        where w.id = p_worker_id and w.died_at is null and w.stopped_at is null
        for key share;
        v_alive := found;
    end if;
    if not v_alive then
        raise exception 'worker % is not registered, has stopped or was declared dead', p_worker_id
            using errcode = 'PGQ01', hint = 'register it anew with pgq.register_worker';
    end if;
end
$$;
