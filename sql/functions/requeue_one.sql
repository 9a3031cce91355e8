-- Sends one job, already locked, back to pending. Only pgq.requeue calls this.
-- Takes: the job; why the attempt that it is taken from is lost, or null: it does not run.
-- Returns: requeued, or unique key taken. One row at a time, because one taken key would undo a
-- whole set. Locks: the job's row. Relies on: jobs_pkey, jobs_unique_key.
create or replace function pgq.requeue_one(p_id bigint, p_taken text) returns text
language plpgsql
set search_path = ''
set enable_seqscan = off
as $$
begin
    if p_taken is not null then
        insert into pgq.attempts (job_id, attempt, worker_id, started_at, outcome, error)
        select j.id, j.attempts, j.worker_id, j.locked_at, 'lost', p_taken
        from pgq.jobs as j
        where j.id = p_id and j.shard = 0;
    end if;
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
