-- breaking
-- Runs that other jobs wait for may stand in a receipt. Whoever takes it apart sees by their edges that they are waited for; an older
-- program would make rows of them that nobody is told of.

comment on table receipts is 'runs that were leased together and have no rows of their own; whether others wait for them is told by edges';
