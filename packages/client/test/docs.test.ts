import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { BelfryApiError, BelfryClient, base64Body } from '../src/index.ts'
import { startTestServer, type TestServer } from './server.ts'

const PAGE = new URL('../../../docs/reference/client.md', import.meta.url)
const text = await readFile(PAGE, 'utf8')
const programs = [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, program = '']) => program)
const titles = [...text.matchAll(/```ts\n/g)].map(
  ({ index }) => text.slice(0, index).split('\n## ').at(-1)?.split('\n')[0],
)

const EXPORTS: Record<string, unknown> = { BelfryApiError, BelfryClient, base64Body }

let server: TestServer

beforeAll(async () => {
  server = await startTestServer()
  server.belfry.handle('served', async () => ({ sent: true }))
})
afterAll(() => server.stop())

/** Runs a program of the page: its imports are the client's, `belfry` is there already unless it makes one itself. */
async function perform(program: string): Promise<void> {
  const names = [...program.matchAll(/^import \{ (.*) \} from '@belfry\/client'$/gm)].flatMap(([, list = '']) =>
    list.split(', '),
  )
  const body = program
    .replace(/^import .*$/gm, '')
    .replaceAll('http://localhost:8080', server.url)
    .replaceAll('process.env.BELFRY_KEY', 'key')
  const known: Record<string, unknown> = {
    ...Object.fromEntries(names.map((name) => [name, EXPORTS[name]])),
    ...(/const belfry =/.test(body) ? {} : { belfry: server.client() }),
    key: server.adminKey,
  }
  expect(Object.entries(known).filter(([, value]) => value === undefined)).toEqual([])
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor
  await new AsyncFunction(...Object.keys(known), body)(...Object.values(known))
}

/** What programs are about that say so: something to do, or what they must print. */
const PREPARED: Record<string, (program: string) => Promise<string>> = {
  // Somebody must perform what is waited for.
  'Waiting for a result': async (program) => program.replace('emails', 'served'),
  'A worker of plain calls': async (program) => {
    await server.client().jobs.create({ queue: 'emails', payload: 1 })
    return program
  },
}
const PRINTED: Record<string, unknown[][]> = {
  'Waiting for a result': [[{ sent: true }]],
  'Instants and durations': [[true]],
  'A worker of plain calls': [[expect.any(String), 'ok']],
}

describe('every program of the reference runs as it is printed', () => {
  test.each(programs.map((program, i) => [titles[i] ?? '', program] as const))('%s', async (title, program) => {
    const prepared = (await PREPARED[title]?.(program)) ?? program
    const said = vi.spyOn(console, 'log').mockImplementation(() => {})
    await perform(prepared)
    const lines = [...said.mock.calls]
    said.mockRestore()
    if (PRINTED[title]) expect(lines).toEqual(PRINTED[title])
  })
})

test('every method is on the page', () => {
  const belfry = new BelfryClient({ url: 'http://belfry.test' })
  for (const [name, resource] of Object.entries(belfry)) {
    const row = text.split('\n').find((line) => line.startsWith(`| \`${name}\` |`)) ?? ''
    const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(resource)).filter((one) => one !== 'constructor')
    for (const method of methods) expect(row, `${name}.${method}`).toContain(`\`${method}(`)
  }
})
