import { harmless } from './text-width.ts'

/** A name and its value; null, undefined and '' are left out. */
export type Field = readonly [name: string, value: string | number | null | undefined]

export function detailsOf(fields: readonly Field[]): string {
  const shown = fields.filter(([, value]) => value !== null && value !== undefined && value !== '')
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${harmless(String(value))}`).join('\n')
}
