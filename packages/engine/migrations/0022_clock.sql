-- breaking
-- The clock by which leases are given, extended and judged, in milliseconds: the database's, whatever the clocks of nodes say. An older program
-- would write leases by its own.
create function clock() returns double precision
language sql volatile parallel safe
as $$ select floor(extract(epoch from clock_timestamp()) * 1000)::double precision $$;
