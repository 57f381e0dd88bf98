import { createHash } from 'node:crypto'
import { curlOf } from './docs-example.ts'
import { fields, kindOf, row } from './docs-fields.ts'
import { STYLE } from './docs-style.ts'
import { escaped, inline, paragraphs, slug } from './docs-text.ts'
import type { Answer, OpenApiDocument, Operation, Parameter, Schema } from './openapi-document.ts'

/** The page has its style within and loads nothing; anything else would be a mistake, and is forbidden. */
export const DOCS_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

interface Entry {
  method: string
  path: string
  operation: Operation
}

const BEFORE_YOU_BEGIN = `export BELFRY_URL=http://127.0.0.1:8080
export BELFRY_API_KEY=…   # printed on the first start`

/** The whole reference on one page, made from the OpenAPI document. */
export function docsPage(document: OpenApiDocument): string {
  const { info, paths, components } = document
  const tags = new Map<string, Entry[]>()
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const tag = operation.tags?.[0] ?? 'Other'
      tags.set(tag, [...(tags.get(tag) ?? []), { method, path, operation }])
    }
  }
  const shapes = Object.entries(components.schemas ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  const sections = [...tags].map(
    ([tag, entries]) =>
      `<h2 id="${slug(tag)}">${escaped(tag)}</h2>${entries.map((entry) => article(entry, document)).join('')}`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(info.title)} API</title>
<style>${STYLE}</style>
</head>
<body>
<nav aria-label="Routes"><h1>${escaped(info.title)}</h1><p class="version">API ${escaped(info.version)} · <a href="/openapi.json">openapi.json</a></p>${[...tags].map(menu).join('')}<h2>Shapes</h2><ul>${shapes.map(([name]) => `<li><a href="#shape-${slug(name)}">${escaped(name)}</a></li>`).join('')}</ul></nav>
<main>
${paragraphs(info.description)}
<pre>${escaped(BEFORE_YOU_BEGIN)}</pre>
${sections.join('\n')}
<h2 id="shapes">Shapes</h2>
${shapes.map(([name, schema]) => shape(name, schema)).join('\n')}
</main>
</body>
</html>
`
}

function menu([tag, entries]: [string, Entry[]]): string {
  const items = entries.map(
    ({ method, path, operation }) =>
      `<li><a href="#${operation.operationId}"><span class="method ${method}">${method.toUpperCase()}</span><span>${escaped(path.replace(/^\/v1/, ''))}</span></a></li>`,
  )
  return `<h2><a href="#${slug(tag)}">${escaped(tag)}</a></h2><ul>${items.join('')}</ul>`
}

function article({ method, path, operation }: Entry, document: OpenApiDocument): string {
  const { operationId, summary = '', description, parameters = [], requestBody } = operation
  const scope = operation['x-belfry-scope']
  const [content] = Object.values(requestBody?.content ?? {})
  return `<article id="${operationId}">
<header><h3>${escaped(summary)}</h3><span class="method ${method}">${method.toUpperCase()}</span><span class="path">${escaped(path)}</span><span class="scope">${scope === null ? 'no key' : `scope ${[scope].flat().join(' or ')}`}</span></header>
${description === undefined ? '' : paragraphs(description)}
${parameterList(
  'In the address',
  parameters.filter((one) => one.in !== 'header'),
)}
${parameterList(
  'Headers',
  parameters.filter((one) => one.in === 'header'),
)}
${content?.schema ? body(content.schema, requestBody?.required !== false, document) : ''}
<h4>Try it</h4><pre>${escaped(curlOf(method, path, operation, document))}</pre>
<h4>Answers</h4>${answers(operation, document)}
</article>`
}

function parameterList(title: string, parameters: Parameter[]): string {
  if (parameters.length === 0) return ''
  const rows = parameters.map(({ name, schema, description, required = false, example }) =>
    row(
      name,
      { ...schema, ...(description ? { description } : {}), ...(example === undefined ? {} : { examples: [example] }) },
      required,
    ),
  )
  return `<h4>${title}</h4><dl>${rows.join('')}</dl>`
}

function body(schema: Schema, isRequired: boolean, document: OpenApiDocument): string {
  const name = schema.$ref?.split('/').at(-1)
  const whole = name === undefined ? schema : (document.components.schemas?.[name] ?? {})
  const list = fields(whole)
  if (list === '' && !isRequired) return ''
  const about = whole.description === undefined ? '' : `<p>${inline(whole.description)}</p>`
  const text = list === '' ? `<p>${kindOf(whole)}</p>` : list
  return `<h4>Body${isRequired ? '' : ' (may be left out)'}</h4>${about}${text}`
}

/** What it is asked for comes first; what goes wrong is mostly the same everywhere, and folded. */
function answers({ responses }: Operation, document: OpenApiDocument): string {
  const lines = (from: number, to: number): string =>
    Object.entries(responses)
      .filter(([status]) => Number(status) >= from && Number(status) < to)
      .map(([status, answer]) => answerLine(status, answer, document))
      .join('')
  const problems = Object.keys(responses).filter((status) => Number(status) >= 400)
  const folded = `<details><summary>problems: ${problems.join(', ')}</summary><ul class="answers">${lines(400, 600)}</ul></details>`
  return `<ul class="answers">${lines(200, 400)}</ul>${folded}`
}

function answerLine(status: string, answer: Answer, { components }: OpenApiDocument): string {
  const { description = '', content } = answer.$ref
    ? (components.responses?.[answer.$ref.split('/').at(-1) ?? ''] ?? {})
    : answer
  const [media] = Object.values(content ?? {})
  const isError = Number(status) >= 400
  const text = description === 'Default Response' ? '' : inline(description)
  const kind = media?.schema ? kindOf(media.schema) : ''
  const inner = !isError && media?.schema && !media.schema.$ref ? fields(media.schema) : ''
  const more = inner === '' ? '' : `<details><summary>fields</summary>${inner}</details>`
  return `<li><b>${status}</b><span>${[text, kind === 'object' ? '' : kind].filter((one) => one !== '').join(' · ')}${more}</span></li>`
}

function shape(name: string, schema: Schema): string {
  const about = schema.description === undefined ? '' : `<p>${inline(schema.description)}</p>`
  return `<article id="shape-${slug(name)}"><header><h3>${escaped(name)}</h3></header>${about}${fields(schema)}</article>`
}
