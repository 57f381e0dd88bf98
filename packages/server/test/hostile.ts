import type { Chance } from './chance.ts'

const WRONG_VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  2 ** 53,
  -(2 ** 63),
  1e308,
  '',
  ' ',
  'x'.repeat(5_000),
  'a\u0000b',
  '\u0001\u001f\u007f\u0085\u2028',
  '\ud800',
  '\udfff\ud800',
  '{{secret:nope}}',
  '{{',
  "'; drop table jobs; --",
  '../../etc/passwd',
  '9999-99-99T99:99:99Z',
  '+275760-09-13T00:00:00.000Z',
  'P999999999Y',
  '99999999999999999999s',
  '* * * * * * * *',
  'http://169.254.169.254/',
  'file:///etc/passwd',
  'javascript:alert(1)',
  'http://[::ffff:127.0.0.1]:1/',
  [],
  {},
  [[[[[]]]]],
  { toString: 1, valueOf: null, length: -1 },
]

/** One thing in the value is replaced, left out, doubled or added. */
export function almost(value: unknown, chance: Chance): unknown {
  if (typeof value !== 'object' || value === null || chance.happens(0.1)) return chance.pick(WRONG_VALUES)
  if (Array.isArray(value)) {
    if (value.length === 0) return [chance.pick(WRONG_VALUES)]
    const at = chance.integer(0, value.length - 1)
    return value.map((item, i) => (i === at ? almost(item, chance) : item))
  }
  const names = Object.keys(value)
  const name = chance.pick([...names, 'unknown'])
  const copy: Record<string, unknown> = { ...value }
  const how = chance.integer(0, 4)
  if (how === 0) delete copy[name]
  else if (how === 1) copy[misspelled(name, chance)] = copy[name]
  else copy[name] = name in copy && how !== 2 ? almost(copy[name], chance) : chance.pick(WRONG_VALUES)
  return copy
}

function misspelled(name: string, chance: Chance): string {
  const at = chance.integer(0, name.length)
  return chance.pick([`${name.slice(0, at)}x${name.slice(at)}`, name.toUpperCase(), `${name}\u0000`, '', '__proto__'])
}

type TextMaker = (json: string, chance: Chance) => string | Buffer

/** Bodies that are no JSON, or JSON that hurts; each begins from a good one. */
export const HOSTILE_BODIES: Record<string, TextMaker> = {
  deepArrays: (_json, chance) => '['.repeat(chance.pick([200, 5_000, 100_000])) + ']'.repeat(chance.pick([0, 200])),
  deepObjects: () => `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`,
  deepInside: (json) => inside(json, `"payload":${'['.repeat(5_000)}${']'.repeat(5_000)}`),
  hugeNumber: (json, chance) =>
    inside(json, `"priority":${chance.pick(['1e400', '-1e999', '9'.repeat(400), '-0', '1e-400'])}`),
  duplicateKeys: (json) => inside(json, '"queue":"first","queue":"second","queue":3'),
  prototype: (json) => inside(json, '"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}}'),
  controlCharacters: (json) => inside(json, '"queue":"a\u0001\u001b[2Jb"'),
  escapedNul: (json, chance) =>
    inside(json, `${JSON.stringify(chance.pick(['name', 'queue', 'payload', 'reason', 'value']))}:"a\\u0000b"`),
  loneSurrogate: (json, chance) =>
    inside(json, `${JSON.stringify(chance.pick(['name', 'payload', 'reason', 'labels']))}:"\\ud83d"`),
  surrogateKey: (json) => inside(json, '"payload":{"\\udc00":{"\\u0000":1}}'),
  truncated: (json, chance) => json.slice(0, chance.integer(0, Math.max(0, json.length - 1))),
  invalidUtf8: (json) =>
    Buffer.concat([Buffer.from(json.slice(0, -1)), Buffer.from([0xff, 0xc0, 0x80, 0xfe]), Buffer.from('}')]),
  byteOrderMark: (json) => `\ufeff${json}`,
  empty: () => '',
  blank: () => ' \n\t ',
  notJson: (_json, chance) =>
    chance.pick(['undefined', 'NaN', "{'a':1}", '{a:1}', '<xml/>', 'a=1&b=2', '{"a":1}{"b":2}', '\0\0\0']),
  topLevel: (_json, chance) => chance.pick(['null', 'true', '1', '"text"', '[]', '[null]', '[[]]', '""']),
  longText: (json) => inside(json, `"name":"${'n'.repeat(300_000)}"`),
  manyKeys: (json) => inside(json, Array.from({ length: 20_000 }, (_, i) => `"k${i}":${i}`).join(',')),
  manyItems: (_json, chance) => `{"jobs":[${Array.from({ length: chance.pick([0, 1, 300]) }, () => '{}').join(',')}]}`,
  binary: (_json, chance) => Buffer.from(Array.from({ length: 400 }, () => chance.integer(0, 255))),
}

/** The object with more in it. */
function inside(json: string, more: string): string {
  if (!json.startsWith('{')) return `{${more}}`
  return json === '{}' ? `{${more}}` : `${json.slice(0, -1)},${more}}`
}

export const HOSTILE_TYPES = [
  '',
  'text/plain',
  'application/xml',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/json; charset=utf-16',
  'application/json;;;',
  'application/json, text/html',
  'APPLICATION/JSON',
  'json',
  '/',
  'application/problem+json',
  `application/${'x'.repeat(2_000)}`,
]

/** Path segments, percent-encoded or deliberately not. */
export const HOSTILE_SEGMENTS = [
  '%',
  '%zz',
  '%c0%80',
  '%00',
  '%e0%80%af',
  '%ff%fe',
  '%2e%2e%2f',
  '..',
  '.',
  '%2f',
  '%25',
  'a%00b',
  '%ed%a0%80',
  '\u00e9\u{1f600}',
  '0',
  '-1',
  '99999999999999999999',
  '2147483648',
  'null',
  'undefined',
  '__proto__',
  'constructor',
  '%20',
  '*',
  ';',
  'x'.repeat(300),
  'x'.repeat(6_000),
  '0199aaaa-bbbb-7000-8000-00000000000G',
  '0199AAAA-BBBB-7000-8000-000000000001',
  '0199aaaa-bbbb-7fff-8000-000000000001',
  'ffffffff-ffff-7fff-bfff-ffffffffffff',
  'ffffffff-ffff-7fff-bfff-ffffffffffff.zzzzzzzzz',
  '0199aaaa-bbbb-7000-8000-000000000001.2gosa7pa2gv',
  '0199aaaa-bbbb-7000-8000-000000000001.-zzzz',
]

export const HOSTILE_VALUES = [
  '',
  '%00',
  '%',
  '%ff',
  '-1',
  '0',
  '1e3',
  '1.5',
  'Infinity',
  'NaN',
  '99999999999999999999',
  '2026-02-30T00:00:00Z',
  '9999-12-31T23:59:59Z',
  '-000001-01-01T00:00:00Z',
  '+275760-09-13T00:00:00Z',
  '%ed%a0%80',
  'a%00b',
  'x'.repeat(5_000),
  '__proto__',
  ...[
    '',
    'live',
    'live~0',
    'live~9999999999999999~ffffffff-ffff-ffff-ffff-ffffffffffff~9999999999999999~9',
    '~~~~~',
    '\0',
  ].map((text) => Buffer.from(text).toString('base64url')),
  Buffer.from('9999999999999999~ffffffff-ffff-ffff-ffff-ffffffffffff').toString('base64url'),
  Buffer.from('past~9999999999999999~ffffffff-ffff-ffff-ffff-ffffffffffff~-9999999999999999~9999999999').toString(
    'base64url',
  ),
  Buffer.from('9999999999999999~ffffffff-ffff-ffff-ffff-ffffffffffff~9999999999999999').toString('base64url'),
]

/** Header lines, as they are sent. */
export const HOSTILE_HEADERS = [
  'If-Match: *',
  'If-Match: "x',
  'If-Match: W/"1", "2"',
  `If-Match: "${'9'.repeat(400)}"`,
  'If-None-Match: *',
  'Idempotency-Key: ',
  `Idempotency-Key: ${'k'.repeat(4_000)}`,
  'Idempotency-Key: a\u0001b',
  'Idempotency-Key: a\r\nIdempotency-Key: b',
  'Belfry-Tenant: nobody',
  'Belfry-Tenant: \u00ff\u00fe',
  `Belfry-Tenant: ${'t'.repeat(3_000)}`,
  'Authorization: Basic YTpi',
  'Authorization: Bearer',
  `Authorization: Bearer ${'k'.repeat(5_000)}`,
  'Authorization: Bearer bk_\u00e4',
  'Content-Encoding: gzip',
  'Expect: 100-continue',
  'Expect: something',
  'Connection: upgrade\r\nUpgrade: websocket',
  'Accept: text/html',
  'Accept: */*;q=broken',
  'X-Forwarded-For: 1.2.3.4, \u0001',
  'Range: bytes=0-',
  `X-Long: ${'h'.repeat(12_000)}`,
  `X-Too-Long: ${'h'.repeat(40_000)}`,
  Array.from({ length: 300 }, (_, i) => `X-${i}: ${i}`).join('\r\n'),
  'Bad Header: x',
  ': no name',
  'No-Colon',
  'traceparent: 00-zz-zz-00',
  'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'Transfer-Encoding: gzip',
]
export const ODD_METHODS = [
  'TRACE',
  'OPTIONS',
  'HEAD',
  'BREW',
  'get',
  'PROPFIND',
  'PATCH',
  'DELETE',
  'PUT',
  'POST',
  'CONNECT',
]
