-- Which element of a histogram counts a duration: 1 for below 1 ms, i for below 2^(i-1) ms,
-- 28 for all longer ones (2^26 ms is 18 hours). Locks: none.
create or replace function pgq.histogram_slot(p_time interval) returns integer
language sql stable parallel safe
return width_bucket(
    date_part('epoch', p_time) * 1000,
    array[
        1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072,
        262144, 524288, 1048576, 2097152, 4194304, 8388608, 16777216, 33554432, 67108864
    ]::double precision[]
) + 1;
