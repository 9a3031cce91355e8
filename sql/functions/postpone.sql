-- Puts a pending job, already locked, off for a minute, with the reason; does nothing if the
-- database refuses that too. Only pgq.claim_singly calls this. Returns: nothing.
-- Locks: the job's row. Relies on: jobs_pkey.
create or replace function pgq.postpone(p_id bigint, p_reason text) returns void
language plpgsql
set search_path = ''
set enable_seqscan = off
as $$
begin
    update pgq.jobs as j
    set scheduled_at = now() + interval '1 minute',
        last_error = left(p_reason, 2000),
        updated_at = now()
    where j.id = p_id and j.shard = 0;
exception
    when others then
        if not pgq.is_fault_of_row(sqlstate) then
            raise;
        end if;
end
$$;
