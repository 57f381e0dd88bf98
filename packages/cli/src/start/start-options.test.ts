import { expect, test } from 'vitest'
import { UsageError } from '../usage-error.ts'
import { readStartOptions, unknownVariables } from './start-options.ts'

const ALL_ROLES = ['api', 'promoter', 'dispatcher', 'archivist']

test('nothing set means one process on port 8080 with an embedded database in .belfry, closed to private targets', () => {
  expect(readStartOptions({})).toEqual({
    port: 8080,
    dataDir: '.belfry',
    processes: 1,
    roles: ALL_ROLES,
    allowPrivateTargets: false,
  })
})

test('an empty value is the same as none', () => {
  const names = ['PORT', 'DATA_DIR', 'DATABASE_URL', 'DATABASE_READ_URL', 'ADMIN_KEY', 'ENCRYPTION_KEY', 'PROCESSES']
  const more = ['ROLES', 'ALLOW_PRIVATE_TARGETS', 'PUBLIC_URL']
  const empty = [...names, ...more].map((name) => [name === 'PORT' ? name : `BELFRY_${name}`, ''])
  expect(readStartOptions(Object.fromEntries(empty))).toEqual(readStartOptions({}))
})

test('what is set is taken', () => {
  const environment = {
    PORT: '0',
    BELFRY_DATA_DIR: '/data',
    BELFRY_DATABASE_URL: 'postgresql://me@db/belfry',
    BELFRY_DATABASE_READ_URL: 'postgres://me@replica/belfry',
    BELFRY_ADMIN_KEY: 'k'.repeat(32),
    BELFRY_ENCRYPTION_KEY: 'ab'.repeat(32),
    BELFRY_PROCESSES: '4',
    BELFRY_ROLES: 'dispatcher, api',
    BELFRY_ALLOW_PRIVATE_TARGETS: '1',
    BELFRY_PUBLIC_URL: 'https://belfry.example.com/',
  }
  expect(readStartOptions(environment)).toEqual({
    port: 0,
    dataDir: '/data',
    processes: 4,
    roles: ['api', 'dispatcher'],
    allowPrivateTargets: true,
    database: 'postgresql://me@db/belfry',
    readDatabase: 'postgres://me@replica/belfry',
    adminKey: 'k'.repeat(32),
    encryptionKey: 'ab'.repeat(32),
    publicUrl: 'https://belfry.example.com',
  })
})

test.each(['http', '-1', '65536', '80.5', ' 80', '0x50', '1e3'])(
  'PORT=%s is refused with what would be right',
  (port) => {
    expect(() => readStartOptions({ PORT: port })).toThrow(UsageError)
    expect(() => readStartOptions({ PORT: port })).toThrow(/PORT is .* must be a number from 0 to 65535/)
  },
)

test.each(['mysql://me:secret@db/x', 'localhost:5432', 'secret'])(
  'a wrong database URL is refused, and not shown',
  (url) => {
    const attempt = () => readStartOptions({ BELFRY_DATABASE_URL: url })
    expect(attempt).toThrow(/BELFRY_DATABASE_URL .* must look like postgres:/)
    expect(attempt).not.toThrow(/secret/)
  },
)

test.each([
  ['BELFRY_ADMIN_KEY', 'hunter2', /has 7 characters, but must have 32 or more/],
  ['BELFRY_ADMIN_KEY', `hunter2 ${'é'.repeat(32)}`, /cannot stand in an HTTP header/],
  ['BELFRY_ENCRYPTION_KEY', 'hunter2', /must be 32 bytes, written as base64/],
  ['BELFRY_ENCRYPTION_KEY', `hunter2${'0'.repeat(57)}`, /must be 32 bytes/],
])('a wrong %s is refused, and not shown', (name, value, complaint) => {
  const attempt = () => readStartOptions({ [name]: value })
  expect(attempt).toThrow(complaint)
  expect(attempt).not.toThrow(/hunter2/)
})

test.each([
  ['BELFRY_PROCESSES', '0', /must be a number from 1 to 128/],
  ['BELFRY_PROCESSES', 'many', /must be a number from 1 to 128/],
  ['BELFRY_ALLOW_PRIVATE_TARGETS', 'true', /is "true", but must be 1 \(on\) or empty \(off\)/],
  ['BELFRY_ROLES', 'api,dispacher', /holds "dispacher".*did you mean dispatcher\?/],
  ['BELFRY_ROLES', ',', /holds ""/],
  ['BELFRY_PUBLIC_URL', 'belfry.example.com', /must look like https:/],
  ['BELFRY_PUBLIC_URL', 'ftp://belfry', /must look like https:/],
  ['BELFRY_DATABASE_READ_URL', 'postgres://me@replica/belfry', /set without BELFRY_DATABASE_URL/],
])('%s=%s is refused with what would be right', (name, value, complaint) => {
  expect(() => readStartOptions({ [name]: value })).toThrow(complaint)
})

test('a key of 32 bytes may be written in base64 too', () => {
  const key = Buffer.alloc(32, 7).toString('base64')
  expect(readStartOptions({ BELFRY_ENCRYPTION_KEY: key }).encryptionKey).toBe(key)
})

test('a misspelt variable is told, with the one that was meant', () => {
  const environment = { BELFRY_DATABSE_URL: 'postgres://x', BELFRY_DATA_DIR: 'x', HOME: '/' }
  expect(unknownVariables(environment)).toEqual([{ name: 'BELFRY_DATABSE_URL', nearest: 'BELFRY_DATABASE_URL' }])
})
