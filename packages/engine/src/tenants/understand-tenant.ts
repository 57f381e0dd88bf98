import { Complaints, readInteger, readRecord, readText, readWord, setGiven } from '../input/read-fields.ts'

/** Null: no limit. */
export interface TenantQuotas {
  /** Jobs that have a future or are in flight. */
  activeJobs: number | null
  createsPerSecond: number | null
  requestsPerSecond: number | null
  /** Of one payload. */
  payloadBytes: number | null
  /** Runs that wait to be started, in all queues together. */
  waitingRuns: number | null
  /** How long the oldest of them may have been due. */
  waitingSeconds: number | null
}

export interface TenantInput {
  name: string
  tier?: string
  /** Its share beside others, 1 to 1000. */
  weight?: number
  quotas?: Partial<TenantQuotas>
}

export type TenantPatch = Omit<TenantInput, 'name'>

const MAX_TIER = 64
const MAX_WEIGHT = 1_000
const MAX_QUOTA = 2_147_483_647
/** What a node is willing to hold in memory for one payload; a quota may only be smaller. */
export const MAX_PAYLOAD_BYTES = 10 * 1024 * 1024
const MAX_WAITING_RUNS = 1_000_000
const MAX_WAITING_SECONDS = 7 * 86_400
/** Each with the highest that it may be. */
const QUOTAS: Readonly<Record<keyof TenantQuotas, number>> = {
  activeJobs: MAX_QUOTA,
  createsPerSecond: MAX_QUOTA,
  requestsPerSecond: MAX_QUOTA,
  payloadBytes: MAX_PAYLOAD_BYTES,
  waitingRuns: MAX_WAITING_RUNS,
  waitingSeconds: MAX_WAITING_SECONDS,
}
const QUOTA_NAMES = Object.keys(QUOTAS) as (keyof TenantQuotas)[]
const PATCH_FIELDS = ['tier', 'weight', 'quotas']

export const NO_QUOTAS = Object.fromEntries(QUOTA_NAMES.map((name) => [name, null])) as Record<keyof TenantQuotas, null>

export interface UnderstoodTenant {
  tier?: string
  weight?: number
  quotas: Partial<TenantQuotas>
}

export function understandTenant(input: TenantInput): UnderstoodTenant & { name: string } {
  const complaints = new Complaints()
  const record = readRecord(complaints, 'tenant', input, ['name', ...PATCH_FIELDS])
  const name = record && readWord(complaints, 'name', record.name)
  const rest = record && readFields(complaints, record)
  if (complaints.list.length > 0) throw complaints.error('invalid_argument')
  return { ...(rest as UnderstoodTenant), name: name as string }
}

/** What is left out stays as it is. */
export function understandTenantPatch(patch: TenantPatch): UnderstoodTenant {
  const complaints = new Complaints()
  const record = readRecord(complaints, 'tenant', patch, ['name', ...PATCH_FIELDS])
  if (record?.name !== undefined) complaints.add('name', 'cannot be changed: create another tenant')
  const rest = record && readFields(complaints, record)
  if (complaints.list.length > 0) throw complaints.error('invalid_argument')
  return rest as UnderstoodTenant
}

function readFields(complaints: Complaints, { tier, weight, quotas }: Record<string, unknown>): UnderstoodTenant {
  const understood: UnderstoodTenant = { quotas: {} }
  setGiven(understood, 'tier', tier, (value) => readText(complaints, 'tier', value, MAX_TIER))
  setGiven(understood, 'weight', weight, (value) => readInteger(complaints, 'weight', value, 1, MAX_WEIGHT))
  const given = quotas === undefined ? undefined : readRecord(complaints, 'quotas', quotas, QUOTA_NAMES)
  for (const quota of QUOTA_NAMES) {
    setGiven(understood.quotas, quota, given?.[quota], (value) =>
      value === null ? null : readInteger(complaints, `quotas.${quota}`, value, 1, QUOTAS[quota]),
    )
  }
  return understood
}
