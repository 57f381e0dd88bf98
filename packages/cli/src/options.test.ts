import { expect, test } from 'vitest'
import { readStartOptions, UsageError } from './options.ts'

test('nothing set means port 8080 and an embedded database in .belfry', () => {
  expect(readStartOptions({})).toEqual({ port: 8080, dataDir: '.belfry' })
})

test('an empty value is the same as none', () => {
  expect(readStartOptions({ PORT: '', BELFRY_DATA_DIR: '', BELFRY_DATABASE_URL: '' })).toEqual(readStartOptions({}))
})

test('what is set is taken', () => {
  const environment = { PORT: '0', BELFRY_DATA_DIR: '/data', BELFRY_DATABASE_URL: 'postgresql://me@db/belfry' }
  expect(readStartOptions(environment)).toEqual({
    port: 0,
    dataDir: '/data',
    database: 'postgresql://me@db/belfry',
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
