-- How long the silence of a worker of these queues is forgiven where no lock tells that it lives:
-- the longest visibility timeout of the queues. Locks: none.
create or replace function pgq.forgiven_silence(p_queues text[]) returns interval
language sql stable set search_path = '' as $$
    select coalesce(max(q.visibility_timeout), interval '60 seconds')
    from pgq.queues as q
    where q.queue = any (p_queues);
$$;
