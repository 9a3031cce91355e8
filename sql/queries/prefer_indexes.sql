-- Until the end of the transaction, plans walk the index that fits, and read no table as a whole:
-- after a burst, statistics may still say that most jobs are live. Bitmap scans are avoided too,
-- since `shard = 0` alone makes one of jobs_pkey. Not for the session, which others may get from
-- a pooler.
select
    pg_catalog.set_config('enable_seqscan', 'off', true),
    pg_catalog.set_config('enable_bitmapscan', 'off', true)
