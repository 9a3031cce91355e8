-- Enqueues one job in the caller's transaction.
-- Takes: kind and payload; all else may be left out. What is null comes from the kind's row in
-- pgq.kinds, else: queue default, 3 attempts, no timeout. Due at scheduled_at, or after delay, or
-- now. unique_key: at most one unfinished job has it, over all queues and kinds.
-- Returns: the job's id; duplicate is true when an unfinished job has the unique key already, and
-- the id is then that job's. Under REPEATABLE READ a key taken since the snapshot raises 40001.
-- Locks: waits for a transaction that is enqueuing the same unique key.
create or replace function pgq.enqueue(
    kind text,
    payload jsonb default '{}',
    queue text default null,
    priority integer default 0,
    delay interval default null,
    scheduled_at timestamptz default null,
    max_attempts integer default null,
    timeout interval default null,
    unique_key text default null
) returns table (id bigint, duplicate boolean)
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
    if enqueue.delay < interval '0' then
        raise exception 'the delay must not be negative: %', enqueue.delay
            using errcode = 'invalid_parameter_value';
    end if;
    if enqueue.delay is not null and enqueue.scheduled_at is not null then
        raise exception 'give a delay or scheduled_at, not both'
            using errcode = 'invalid_parameter_value';
    end if;
    loop
        insert into pgq.jobs as j
            (kind, payload, queue, priority, scheduled_at, max_attempts, timeout, unique_key)
        select
            enqueue.kind,
            enqueue.payload,
            coalesce(enqueue.queue, k.queue, 'default'),
            coalesce(enqueue.priority, 0),
            coalesce(enqueue.scheduled_at, now() + coalesce(enqueue.delay, interval '0')),
            coalesce(enqueue.max_attempts, k.max_attempts, 3),
            coalesce(enqueue.timeout, k.timeout),
            enqueue.unique_key
        from (values (true)) as one
        left join pgq.kinds as k on k.kind = enqueue.kind
        on conflict (unique_key, shard)
            where unique_key is not null and status in ('pending', 'running')
            do nothing
        returning j.id into enqueue.id;
        if found then
            duplicate := false;
            return next;
            return;
        end if;
        select j.id into enqueue.id
        from pgq.jobs as j
        where j.unique_key = enqueue.unique_key
            and j.status in ('pending', 'running');
        if found then
            duplicate := true;
            return next;
            return;
        end if;
        -- The holder of the key finished between the two statements: try again.
    end loop;
end
$$;
