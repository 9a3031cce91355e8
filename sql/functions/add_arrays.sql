-- Adds two arrays element by element; the shorter one counts as filled with zeros. Locks: none.
create or replace function pgq.add_arrays(p_a bigint[], p_b bigint[]) returns bigint[]
language sql immutable parallel safe set search_path = ''
return array(
    select coalesce(u.a, 0) + coalesce(u.b, 0)
    from unnest(p_a, p_b) with ordinality as u (a, b, place)
    order by u.place
);
