/** How others treat the nights when clocks change, where that is not how Belfry does. */

/** Fixed hours (numbers and lists of them) run once; all else follows the clock. */
const isFixed = (hour: string): boolean => /^\d+(,\d+)*$/.test(hour)

/** Cron goes by whether the minutes or the hours begin with a star. */
export function clockChangesOfCron(cron: string): string | null {
  const [minute = '', hour = ''] = cron.split(/\s+/)
  if (minute.startsWith('@')) return null
  const followsClock = minute.startsWith('*') || hour.startsWith('*')
  if (followsClock && isFixed(hour))
    return 'when clocks change, cron follows the clock if the minutes begin with *: it leaves a missing hour out and runs a repeated one twice; Belfry runs times of a given hour once, after the gap if need be'
  if (!followsClock && !isFixed(hour))
    return 'when clocks change, cron runs what the gap left out afterwards and does not repeat a repeated hour; Belfry follows the clock where the hours are a range: it leaves out, and it repeats'
  return null
}

export function clockChangesOfKubernetes(cron: string): string | null {
  const [, hour = '0'] = cron.split(/\s+/)
  if (!isFixed(hour)) return null
  return 'when clocks change, Kubernetes leaves out a time that does not exist and runs a repeated one twice; Belfry runs it right after the gap, and once (dst: {"gap":"skip","overlap":"both"} does as Kubernetes)'
}

export function clockChangesOfEventBridge(cron: string): string {
  const [, hour = '0'] = cron.split(/\s+/)
  if (isFixed(hour))
    return 'when clocks go forward, EventBridge leaves out a time that does not exist; Belfry runs it right after the gap (dst: {"gap":"skip"} does as EventBridge)'
  return 'when clocks go back, EventBridge runs the times of a repeated hour once; Belfry runs them twice, since the hours are no fixed ones (dst: {"overlap":"first"} does as EventBridge)'
}
