-- Reaps, as an operator asks: like pgq.reap, written to the audit, and jobs that could not be given
-- back are tried again at once.
-- An operator's process does not watch the workers as another worker does. It looks at the clock
-- of the database instead, again and again for 4 seconds, and gives its last look: if that is more
-- than 2 seconds old, the server or its host was suspended meanwhile, and all workers perhaps with
-- it. Then nobody is declared dead.
-- Takes: how many jobs at most, call again while it returns that many; when the caller saw the clock
-- last; when it began; who asks (for the audit); whether it is a rehearsal, which the caller undoes.
-- Refuses: as pgq.reap. Returns: the same. Locks: the same. Relies on: the same.
create or replace function pgq.reap_by_hand(
    p_limit integer,
    p_seen_at timestamptz,
    p_began_at timestamptz,
    p_actor text default session_user,
    p_rehearsal boolean default false
) returns table (
    job_id bigint, queue text, kind text, worker_id bigint, status text, error text
)
language plpgsql
set search_path = ''
set lock_timeout = '1s'
as $$
#variable_conflict use_column
declare
    v_found bigint;
begin
    if clock_timestamp() - p_seen_at <= interval '2 seconds' then
        perform pgq.declare_dead();
    end if;
    return query select r.* from pgq.give_back_lost(p_limit, p_began_at, p_rehearsal) as r;
    get diagnostics v_found = row_count;
    if v_found > 0 then
        insert into pgq.audit (actor, action, changed) values (p_actor, 'reap', v_found);
    end if;
end
$$;
