-- Sends one job, already locked, back to pending. Only pgq.requeue calls this.
-- Returns: requeued, or unique key taken. One row at a time, because one taken key would undo a
-- whole set. Locks: the job's row. Relies on: jobs_pkey, jobs_unique_key.
create or replace function pgq.requeue_one(p_id bigint) returns text
language plpgsql
set search_path = ''
set enable_seqscan = off
as $$
begin
    update pgq.jobs as j
    set status = 'pending',
        lease = null,
        worker_id = null,
        attempts = 0,
        losses = 0,
        snoozes = 0,
        scheduled_at = now(),
        cancel_requested_at = null,
        kill_requested_at = null,
        progress = null,
        result = null,
        finished_at = null,
        updated_at = now()
    where j.id = p_id and j.shard = 0;
    return 'requeued';
exception
    when unique_violation then
        return 'unique key taken';
end
$$;
