import type { Origin } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, type Operand, TENANT_FLAG } from '../../command/command.ts'
import { LIMIT_FLAGS, rateText, readLimits, slotsText } from '../../limit-fields.ts'

export const ORIGIN_OPERAND: Operand = { name: 'origin', about: 'scheme, host and port: https://api.example.com' }

export const limitOrigin: Command = {
  name: 'origins limit',
  summary: 'how many calls to an origin may be under way at a time, or start in a period',
  operands: [ORIGIN_OPERAND],
  flags: { ...LIMIT_FLAGS, ...TENANT_FLAG, ...JSON_FLAG },
  details: `  belfry origins limit https://api.example.com --max-running 10 --rate 50/1s`,
  async run({ operands: [name = ''], flags, terminal, api }) {
    const path = `/v1/origins/${encodeURIComponent(name)}`
    const origin = await (await api()).ask<Origin>('PUT', path, { body: readLimits(flags) })
    terminal.details(origin, [
      ['origin', origin.origin],
      ['max running', slotsText(origin) || 'no limit'],
      ['rate', rateText(origin) || 'no limit'],
    ])
  },
}
