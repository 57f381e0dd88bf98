import { Type } from 'typebox'
import { instant, instantText, nullable } from './page.ts'

const MAX_NUMBER = 2_147_483_647
const MAX_PAYLOAD_BYTES = 10_485_760
const MAX_WAITING_RUNS = 1_000_000
const MAX_WAITING_SECONDS = 604_800

export const tenantId = Type.Integer({ minimum: 1, maximum: MAX_NUMBER, description: 'The number of a tenant.' })

const tenantName = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: '^[A-Za-z0-9._-]+$',
  description: 'Letters, digits, `.`, `_` and `-`.',
  examples: ['acme'],
})

const quota = (description: string, maximum = MAX_NUMBER) =>
  Type.Optional(nullable(Type.Integer({ minimum: 1, maximum, description })))

const quotas = Type.Object(
  {
    activeJobs: quota('Jobs that may be active at a time; null: no limit.'),
    createsPerSecond: quota('Jobs that may be created in a second.'),
    requestsPerSecond: quota('Requests that may be made in a second.'),
    payloadBytes: quota('How large a payload may be.', MAX_PAYLOAD_BYTES),
    waitingRuns: quota(
      'Runs that may wait to be started, in all queues together: further one-offs are refused (429 `tenant_full`).',
      MAX_WAITING_RUNS,
    ),
    waitingSeconds: quota(
      'How long the oldest of them may have been due before one-offs are refused (429 `tenant_full`).',
      MAX_WAITING_SECONDS,
    ),
  },
  { additionalProperties: false },
)

const SETTINGS = {
  tier: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9._-]+$', examples: ['standard'] }),
  ),
  weight: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000, description: 'Its share where tenants wait for the same workers.' }),
  ),
  quotas: Type.Optional(quotas),
}

export const newTenant = Type.Object({ name: tenantName, ...SETTINGS }, { additionalProperties: false })
export const tenantPatch = Type.Object(SETTINGS, {
  additionalProperties: false,
  minProperties: 1,
  examples: [{ weight: 2 }],
})

export const tenant = Type.Object(
  {
    id: tenantId,
    name: tenantName,
    tier: Type.String(),
    weight: Type.Integer(),
    quotas: Type.Object({
      activeJobs: nullable(Type.Integer()),
      createsPerSecond: nullable(Type.Integer()),
      requestsPerSecond: nullable(Type.Integer()),
      payloadBytes: nullable(Type.Integer()),
      waitingRuns: nullable(Type.Integer()),
      waitingSeconds: nullable(Type.Integer()),
    }),
    createdAt: instant('When it was made.'),
  },
  { title: 'Tenant' },
)

const scope = Type.Enum(['read', 'write', 'worker', 'admin'])
const keyName = Type.String({ minLength: 1, maxLength: 128, examples: ['deploy'] })

export const newApiKey = Type.Object(
  {
    tenantId: Type.Optional(tenantId),
    name: keyName,
    scopes: Type.Array(scope, { minItems: 1, maxItems: 4, uniqueItems: true }),
    expiresAt: Type.Optional(instantText('From then on it is refused; without it: never.')),
  },
  { additionalProperties: false, examples: [{ name: 'deploy', scopes: ['read', 'write'] }] },
)

const PUBLIC_PART = {
  id: Type.String(),
  prefix: Type.String({ description: 'How the key begins: enough to know it by, and how changes name it.' }),
}

export const apiKey = Type.Object(
  {
    ...PUBLIC_PART,
    tenantId,
    name: keyName,
    scopes: Type.Array(scope),
    createdAt: instant('When it was made.'),
    expiresAt: nullable(instant('From when it is refused.')),
    revokedAt: nullable(instant('Since when it is refused.')),
  },
  { title: 'ApiKey', additionalProperties: true },
)

export const madeApiKey = Type.Object(
  { ...PUBLIC_PART, key: Type.String({ description: 'The key itself. It is shown this once.' }) },
  { title: 'MadeApiKey' },
)
