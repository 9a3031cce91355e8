-- Whether an error of this SQLSTATE is the fault of the row that was to be changed (a trigger, a
-- constraint, damage), and not of the server, of another transaction, or of an administrator.
-- Locks: none.
create or replace function pgq.is_fault_of_row(p_sqlstate text) returns boolean
language sql immutable set search_path = ''
return left(p_sqlstate, 2) not in ('40', '53', '55', '57', '58');
