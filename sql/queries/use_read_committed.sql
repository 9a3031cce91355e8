-- For a session of a worker's own, where the database or the role has another default: claims see
-- what others commit between their statements.
select pg_catalog.set_config('default_transaction_isolation', 'read committed', false)
