/**
 * The database's clock, in milliseconds, as one statement reads it: once, however many rows it judges or writes. A statement that
 * gives, extends or judges a lease begins with `CLOCK` and writes `NOW`. Only so does no promise depend on a node's clock.
 */
export const CLOCK = 'clock as materialized (select belfry.clock() as now)'
export const NOW = '(select clock.now from clock)'
