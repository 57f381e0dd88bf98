import type { Tenant } from '../../api/shapes.ts'
import { type Flags, type FlagTable, given } from '../../command/flags.ts'
import type { Field } from '../../terminal/details.ts'
import { timeText } from '../../terminal/time-text.ts'
import { UsageError } from '../../usage-error.ts'

const QUOTAS: Readonly<Record<string, string>> = {
  'active-jobs': 'activeJobs',
  'creates-per-second': 'createsPerSecond',
  'requests-per-second': 'requestsPerSecond',
  'payload-bytes': 'payloadBytes',
  'waiting-runs': 'waitingRuns',
  'waiting-seconds': 'waitingSeconds',
}

export const TENANT_FIELD_FLAGS: FlagTable = {
  tier: { value: 'text', about: 'a word for what it pays for, shown in metrics (standard)' },
  weight: { value: 'n', about: 'its share where tenants compete (1)' },
  'active-jobs': { value: 'n', about: 'jobs with a future; none takes the limit away' },
  'creates-per-second': { value: 'n', about: 'jobs created per second; none takes the limit away' },
  'requests-per-second': { value: 'n', about: 'requests per second; none takes the limit away' },
  'payload-bytes': { value: 'n', about: 'size of a payload; none takes the limit away' },
  'waiting-runs': { value: 'n', about: 'runs that wait to be started; none takes the limit away' },
  'waiting-seconds': { value: 'n', about: 'how long the oldest of them may have been due; none takes the limit away' },
}

/** What the flags say about a tenant, as the API takes it. */
export function readTenant(flags: Flags) {
  const quotas = given(Object.fromEntries(Object.entries(QUOTAS).map(([flag, field]) => [field, quota(flags, flag)])))
  return given({
    tier: flags.text('tier'),
    weight: flags.number('weight'),
    quotas: Object.keys(quotas).length > 0 ? quotas : undefined,
  })
}

function quota(flags: Flags, name: string): number | null | undefined {
  const text = flags.text(name)
  if (text === 'none') return null
  if (text === undefined || /^\d{1,15}$/.test(text)) return flags.number(name)
  throw new UsageError(`--${name} is ${JSON.stringify(text)}, but must be a whole number or none`)
}

export function tenantFields(tenant: Tenant): readonly Field[] {
  return [
    ['tenant', tenant.id],
    ['name', tenant.name],
    ['tier', tenant.tier],
    ['weight', tenant.weight],
    ...Object.entries(tenant.quotas ?? {}).map(([name, value]): Field => [name, value]),
    ['created', timeText(tenant.createdAt)],
  ]
}
