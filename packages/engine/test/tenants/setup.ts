import { expect } from 'vitest'
import { startKit } from '../behaviour/kit.ts'

/** Two tenants, `default` and `other`, each with its own view. */
export async function startTenants(options: Parameters<typeof startKit>[0] = {}) {
  const t = await startKit(options)
  await t.query(`insert into tenants (id, name) values (2, 'other')`)
  return { ...t, own: await t.kit.tenant('default', 'bk_own'), other: await t.kit.tenant('other', 'bk_other') }
}

/** What the call answers instead of a result: code and text, as a caller would see them. */
export async function refusalOf(call: Promise<unknown>): Promise<{ code: string; message: string }> {
  const error = await call.then(
    () => null,
    (thrown: Error & { code: string }) => thrown,
  )
  expect(error, 'it should have been refused').not.toBeNull()
  return { code: error?.code ?? '', message: error?.message ?? '' }
}
