-- The default wait before a retry: 1 minute, 2, 4, ... doubling, at most a day, and up to a tenth
-- more so that jobs that failed together do not come back together.
-- Takes: the number of attempts made, from 1. Any number is safe: the exponent is bounded before
-- the power is taken (2^11 minutes exceed the day already).
-- Locks: none.
create or replace function pgq.backoff(p_attempts integer) returns interval
language sql volatile parallel safe set search_path = ''
return least(
    interval '1 minute' * power(2::double precision, least(greatest(p_attempts, 1), 12) - 1),
    interval '1 day'
) * (1 + random() / 10);
