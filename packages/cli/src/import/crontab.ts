import { clockChangesOfCron } from './clock-changes.ts'
import { type CrontabLine, readCrontabLine } from './crontab-line.ts'
import { NotTaken, type Plan, type Read, type ReadOptions, readEntry, workDiffers } from './entry.ts'
import { Names, nameOfCommand } from './job-name.ts'
import { hasClockChanges, readZone } from './zone.ts'

export interface CrontabOptions extends ReadOptions {
  format: 'user' | 'system'
}

type CrontabEntry = Extract<CrontabLine, { kind: 'entry' }>

/** A variable holds for the lines below it. */
export function readCrontab(text: string, options: CrontabOptions): Read {
  const variables = new Map<string, string>()
  const names = new Names()
  const entries = text.split(/\r?\n/).flatMap((raw, index) => {
    const line = readCrontabLine(raw, options.format)
    if (line.kind === 'variable') variables.set(line.name, line.value)
    if (line.kind !== 'entry' && line.kind !== 'bad') return []
    return readEntry(`line ${index + 1}`, raw.trim(), () => {
      if (line.kind === 'bad') throw new NotTaken(line.reason)
      return planOf(line, new Map(variables), names, options)
    })
  })
  return { entries, passedOver: [] }
}

function planOf(
  entry: CrontabEntry,
  variables: ReadonlyMap<string, string>,
  names: Names,
  { queue, timezone }: CrontabOptions,
): Plan {
  const cron = cronOf(entry.cron)
  const own = variables.get('CRON_TZ')
  const zone = readZone(own || timezone || 'UTC')
  const env = Object.fromEntries([...variables].filter(([name]) => !['CRON_TZ', 'MAILTO', 'SHELL'].includes(name)))
  const { user, command, stdin } = entry
  const shell = variables.get('SHELL')
  return {
    kind: 'job',
    name: names.take(nameOfCommand('crontab', user === undefined ? command : `${user}: ${command}`)),
    isSuspended: false,
    job: {
      cron,
      timezone: zone,
      queue,
      payload: {
        command,
        ...(stdin === undefined ? {} : { stdin }),
        ...(user === undefined ? {} : { user }),
        ...(shell === undefined ? {} : { shell }),
        ...(Object.keys(env).length === 0 ? {} : { env }),
      },
      // As cron does: it starts whatever still runs, repeats nothing, and forgets what it missed.
      overlap: 'allow',
      retry: { maxAttempts: 1 },
      catchUp: { policy: 'none' },
      timeout: 'P1D',
      labels: { 'imported-from': 'crontab' },
    },
    differences: [
      workDiffers('commands', queue),
      'a command may run for ever under cron; here an attempt ends after a day (timeout)',
      'a time missed while nothing ran is forgotten by cron; here it runs if it is less than a minute late, and is recorded as skipped otherwise',
      ...zoneDiffers(own, timezone),
      ...mailDiffers(variables.get('MAILTO')),
      ...variablesDiffer(Object.keys(env)),
      ...userDiffers(entry),
      ...[hasClockChanges(zone) ? clockChangesOfCron(cron) : null].filter((sentence) => sentence !== null),
    ],
  }
}

function cronOf(times: string): string {
  if (times.toLowerCase() === '@reboot')
    throw new NotTaken('@reboot is no time: nothing fires here when a machine starts; let its own start-up do it')
  if (times.includes('~'))
    throw new NotTaken(`${times} has ~, which picks a time by chance when cron starts; H picks one that stays`)
  const [, , day = '*', , weekday = '*'] = times.split(' ')
  // Cron takes a field that begins with a star for no restriction, and then asks for both; we ask for either.
  const both = [day, weekday].map((field) => field !== '*' && field !== '*/1')
  if (both.every(Boolean) && (day.startsWith('*') || weekday.startsWith('*')))
    throw new NotTaken(
      `cron runs ${times} on days that match both ${day} and ${weekday}, since one of them begins with *; here either would do`,
    )
  return times
}

function userDiffers({ command, user }: CrontabEntry): string[] {
  if (user !== undefined) return [`the user ${user} stands in the payload: becoming that user is up to the worker`]
  if (!command.startsWith('root ')) return []
  return ['the command begins with root: a crontab of the system has a column for the user (--system)']
}

function zoneDiffers(own: string | undefined, given: string | undefined): string[] {
  if (own || given) return []
  return ['cron goes by the zone of its machine, which the file does not say: UTC is taken (--timezone says another)']
}

function mailDiffers(mailTo: string | undefined): string[] {
  if (mailTo === '') return []
  const what = mailTo === undefined ? 'output is not mailed' : 'MAILTO is not taken over, output is not mailed'
  return [`${what}: a worker may keep it with the run`]
}

function variablesDiffer(names: readonly string[]): string[] {
  if (names.length === 0) return []
  const readable = `${names.join(', ')} ${names.length === 1 ? 'goes' : 'go'} along in the payload, which whoever may read the job can read`
  const zone = 'TZ is the zone of the command, under cron too; the schedule goes by CRON_TZ or --timezone'
  return names.includes('TZ') ? [readable, zone] : [readable]
}
