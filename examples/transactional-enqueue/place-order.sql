-- The same for everything that speaks SQL: psql -v customer=ada -f place-order.sql
create table if not exists orders (id bigserial primary key, customer text not null);

begin;
with placed as (
  insert into orders (customer) values (:'customer') returning id, customer
)
select belfry.create_job(
  jsonb_build_object('queue', 'confirmations', 'payload', jsonb_build_object('order', id, 'customer', customer))
) as job_id
from placed;
commit;
