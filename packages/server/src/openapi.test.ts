import { createHash } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { createApp } from './create-app.ts'
import type { OpenApiDocument } from './openapi-document.ts'

async function setup() {
  const app = await createApp({ service: () => null, adminKey: null })
  onTestFinished(() => app.close())
  const document = (await app.inject({ url: '/openapi.json' })).json<OpenApiDocument>()
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ title: `${method.toUpperCase()} ${path}`, ...operation })),
  )
  return { app, document, operations }
}

test('every operation says what it does, which scope it needs and what can go wrong', async () => {
  const { document, operations } = await setup()
  expect(document.openapi).toBe('3.1.0')
  for (const operation of operations) {
    expect(operation.summary, operation.title).toBeTruthy()
    expect(operation.tags, operation.title).toHaveLength(1)
    expect(operation, operation.title).toHaveProperty('x-belfry-scope')
    const statuses = Object.keys(operation.responses)
    expect(statuses, operation.title).toContain('503')
    if (operation['x-belfry-scope'] !== null)
      expect(statuses, operation.title).toEqual(expect.arrayContaining(['401', '403']))
  }
  const ids = operations.map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(ids.length)
})

test('every reference of the document leads somewhere', async () => {
  const { document } = await setup()
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)]
  expect(references.length).toBeGreaterThan(10)
  const components = document.components as Record<string, Record<string, unknown>>
  for (const [, kind = '', name = ''] of references) expect(components[kind]?.[name], name).toBeDefined()
  expect(JSON.stringify(document)).not.toContain('x-optional-body')
})

test('the page shows every operation with a line to try, and every shape that it links to', async () => {
  const { app, document, operations } = await setup()
  const answer = await app.inject({ url: '/docs' })
  expect(answer.headers['content-type']).toBe('text/html; charset=utf-8')
  const ids = new Set([...answer.body.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))
  for (const { operationId } of operations) expect(ids, operationId).toContain(operationId)
  for (const [, link] of answer.body.matchAll(/href="#([^"]+)"/g)) expect(ids).toContain(link)
  expect(answer.body.match(/curl /g)).toHaveLength(operations.length)
  for (const name of Object.keys(document.components.schemas ?? {})) expect(answer.body).toContain(`>${name}<`)
})

test('the page loads nothing and runs nothing, and its policy says so', async () => {
  const { app } = await setup()
  const { body, headers } = await app.inject({ url: '/docs' })
  expect(body).not.toMatch(/<script|<link|<img|@import|url\(|\son\w+=|\sstyle=/i)
  const style = /<style>([\s\S]*?)<\/style>/.exec(body)?.[1] ?? ''
  const hash = createHash('sha256').update(style).digest('base64')
  expect(headers['content-security-policy']).toContain(`style-src 'sha256-${hash}'`)
  expect(headers['content-security-policy']).toContain("default-src 'none'")
})
