import { isJobId } from '../job/ids.ts'

const REF = /^pl_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/

export const payloadRefOf = (id: string): string => `pl_${id.replaceAll('-', '')}`

/** Whether it names a payload that is stored here; any other reference is the workers' own business. */
export const isStoredPayload = (payloadRef: string): boolean => REF.test(payloadRef)

/** Null: nothing can be stored under it. */
export function payloadIdOf(payloadRef: string): string | null {
  const id = typeof payloadRef === 'string' ? REF.exec(payloadRef)?.slice(1).join('-') : undefined
  return id !== undefined && isJobId(id) ? id : null
}
