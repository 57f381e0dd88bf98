-- Fairness: what a node has charged to flows that are ahead of their queue, told to the others with its pulse.
alter table nodes add column charges json;

-- Read with every pulse: few tenants weigh more than others, and few queues are shared.
create index tenants_with_weight on tenants (id) include (weight) where weight <> 1;
create index queues_shared on queues (name, id) where shared;
