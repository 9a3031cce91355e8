-- For a session of a worker's own, whatever the database or the role has as a default: claims see
-- what others commit between their statements, and the session lives and waits as the worker wants.
select
    pg_catalog.set_config('default_transaction_isolation', 'read committed', false),
    pg_catalog.set_config('idle_session_timeout', '0', false),
    pg_catalog.set_config('statement_timeout', '0', false),
    pg_catalog.set_config('lock_timeout', '0', false),
    case when pg_catalog.current_setting('transaction_timeout', true) is not null  -- from 17 on
        then pg_catalog.set_config('transaction_timeout', '0', false)
    end
