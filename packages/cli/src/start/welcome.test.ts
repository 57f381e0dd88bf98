import { expect, test } from 'vitest'
import { readStartOptions } from './start-options.ts'
import { welcome } from './welcome.ts'

const url = 'http://127.0.0.1:8080'
const made = { key: 'bk_admin_x', file: '.belfry/admin-key', made: true }

function say(environment: Record<string, string>, adminKey: typeof made | null = made, at = url) {
  return welcome({ url: at, options: readStartOptions(environment), adminKey, environment })
}

test('the first line says where it serves, and nothing else does', () => {
  for (const adminKey of [made, { ...made, made: false }, null]) {
    const lines = say({}, adminKey).split('\n')
    expect(lines[0]).toBe('belfry ready on http://127.0.0.1:8080')
    expect(lines.filter((line) => line.startsWith('belfry ready'))).toHaveLength(1)
  }
})

test('a key is shown by the start that made it, and by no other', () => {
  expect(say({})).toContain('bk_admin_x')
  expect(say({}, { ...made, made: false })).not.toContain('bk_admin_x')
  expect(say({}, { ...made, made: false })).toContain('.belfry/admin-key')
  expect(say({}, null)).not.toContain('key')
})

test('the job to try calls the node itself where that is allowed, and a public page where it is not', () => {
  expect(say({ BELFRY_ALLOW_PRIVATE_TARGETS: '1' })).toContain('"url":"http://127.0.0.1:8080/healthz"')
  expect(say({})).toContain('"url":"https://example.com/"')
})

test('the lines to paste name what is not as usual', () => {
  expect(say({})).toContain('\n  npx belfry jobs cancel hello\n')
  const elsewhere = say({ BELFRY_DATA_DIR: "it's here" }, made, 'http://127.0.0.1:9000')
  expect(elsewhere).toContain(
    "\n  BELFRY_URL=http://127.0.0.1:9000 BELFRY_DATA_DIR='it'\\''s here' npx belfry jobs cancel hello\n",
  )
})

test('a node without the API does not tell how to use it', () => {
  expect(say({ BELFRY_ROLES: 'dispatcher' })).toBe('belfry ready on http://127.0.0.1:8080')
})
