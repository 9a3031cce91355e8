-- Enqueues many jobs in the caller's transaction: all of them, or none if it raises.
-- Takes: parallel arrays, a job an element; an array that is null leaves that out for all jobs,
-- a null element for one. The same defaults and unique keys as pgq.enqueue, which see.
-- Returns: a row a job (place: its position in the arrays, from 1), with its id; or with the
-- holder's id and duplicate.
-- Locks: as pgq.enqueue, in order of unique_key, against deadlocks between two calls.
create or replace function pgq.enqueue_many(
    kinds text[],
    payloads jsonb[],
    queues text[] default null,
    priorities integer[] default null,
    delays interval[] default null,
    scheduled_ats timestamptz[] default null,
    max_attempts integer[] default null,
    timeouts interval[] default null,
    unique_keys text[] default null
) returns table (place bigint, id bigint, duplicate boolean)
language plpgsql
set search_path = ''
set enable_nestloop = off
as $$
#variable_conflict use_column
declare
    v_ids constant bigint[] := array(
        select nextval('pgq.jobs_id_seq') from generate_series(1, cardinality(enqueue_many.kinds))
    );
    v_inserted bigint[];
    v_place integer;
begin
    if exists (select from unnest(enqueue_many.delays) as u (delay) where u.delay < interval '0') then
        raise exception 'a delay must not be negative' using errcode = 'invalid_parameter_value';
    end if;
    if exists (
        select from unnest(enqueue_many.delays, enqueue_many.scheduled_ats) as u (delay, scheduled_at)
        where u.delay is not null and u.scheduled_at is not null
    ) then
        raise exception 'give a job a delay or scheduled_at, not both'
            using errcode = 'invalid_parameter_value';
    end if;

    with inserted as (
        insert into pgq.jobs as j
            (id, kind, payload, queue, priority, scheduled_at, max_attempts, timeout, unique_key)
        select
            g.id, g.kind, coalesce(g.payload, '{}'),
            coalesce(g.queue, k.queue, 'default'), coalesce(g.priority, 0),
            coalesce(g.scheduled_at, now() + coalesce(g.delay, interval '0')),
            coalesce(g.max_attempts, k.max_attempts, 3),
            coalesce(g.timeout, k.timeout), g.unique_key
        from unnest(
            v_ids, enqueue_many.kinds, enqueue_many.payloads, enqueue_many.queues,
            enqueue_many.priorities, enqueue_many.delays, enqueue_many.scheduled_ats,
            enqueue_many.max_attempts, enqueue_many.timeouts, enqueue_many.unique_keys
        ) as g (
            id, kind, payload, queue, priority, delay, scheduled_at, max_attempts, timeout,
            unique_key
        )
        left join pgq.kinds as k on k.kind = g.kind
        order by g.unique_key nulls first, g.id
        on conflict (unique_key, shard)
            where unique_key is not null and status in ('pending', 'running')
            do nothing
        returning j.id
    )
    select coalesce(array_agg(i.id), '{}') into v_inserted from inserted as i;

    return query
    select u.place, u.id, false
    from unnest(v_ids) with ordinality as u (id, place)
    join unnest(v_inserted) as i (id) on i.id = u.id;
    if cardinality(v_inserted) = cardinality(v_ids) then
        return;
    end if;
    -- Some keys are taken: each of those jobs is enqueued by itself, to learn who holds its key.
    for v_place in
        select u.place
        from unnest(v_ids) with ordinality as u (id, place)
        left join unnest(v_inserted) as i (id) on i.id = u.id
        where i.id is null
        order by u.place
    loop
        return query
        select v_place::bigint, e.id, e.duplicate
        from pgq.enqueue(
            enqueue_many.kinds[v_place], coalesce(enqueue_many.payloads[v_place], '{}'),
            enqueue_many.queues[v_place], coalesce(enqueue_many.priorities[v_place], 0),
            enqueue_many.delays[v_place], enqueue_many.scheduled_ats[v_place],
            enqueue_many.max_attempts[v_place], enqueue_many.timeouts[v_place],
            enqueue_many.unique_keys[v_place]
        ) as e;
    end loop;
end
$$;
