import { expect, test } from 'vitest'
import { readDatabaseUrl } from './database-url.ts'

test('a URL with several servers names each of them, and is handed on with the first', () => {
  const read = readDatabaseUrl(
    'postgres://me:pw@a:5433,b,[::1]:6000,%2Ftmp%2Fs/jobs?target_session_attrs=read-write',
    'writes',
  )
  expect(read).toEqual({
    url: 'postgres://me:pw@a:5433/jobs?target_session_attrs=read-write',
    servers: [
      { host: 'a', port: 5433 },
      { host: 'b', port: 5432 },
      { host: '::1', port: 6000 },
      { host: '/tmp/s', port: 5432 },
    ],
  })
})

test.each([
  'postgres://me:pw@a/jobs',
  'postgresql://me@localhost:5432/jobs?host=%2Ftmp',
  'postgres://a/jobs?target_session_attrs=primary',
  '/var/run/postgresql jobs',
  'socket:/tmp?db=jobs',
])('%s names one server, and is left as it is', (url) => {
  expect(readDatabaseUrl(url, 'writes')).toEqual({ url, servers: [] })
})

test.each([
  ['postgres:a,b/jobs', /must look like postgres:/],
  ['postgres://me:secret@a,,b/jobs', /no host name for server 2 of 3/],
  ['postgres://me:secret@a,b%zz/jobs', /no host name for server 2 of 2/],
  ['postgres://me:secret@a:x,b/jobs', /port for server 1 of 2/],
  ['postgres://me:secret@a,b:65536/jobs', /port for server 2 of 2/],
  ['postgres://me:secret@a,b:0/jobs', /port for server 2 of 2/],
  ['postgres://me:secret@/jobs?host=a,b', /several servers after the database/],
  ['postgres://me:secret@a,b/jobs?host=c', /another one after the database/],
  ['postgres://me:secret@a,b/jobs?target_session_attrs=any', /than read-write or primary/],
  ['postgres://me:secret@a/jobs?target_session_attrs=standby', /than read-write or primary/],
])('%s is refused with what is wrong, and not repeated', (url, problem) => {
  const read = readDatabaseUrl(url, 'writes')
  expect(read).toMatch(problem)
  expect(read).not.toMatch(/secret/)
})

test('a replica may be on any of several servers, and is not asked for writes', () => {
  expect(readDatabaseUrl('postgres://a,b/jobs?target_session_attrs=any', 'reads')).toMatchObject({
    servers: [{ host: 'a' }, { host: 'b' }],
  })
  expect(readDatabaseUrl('postgres://a,b/jobs?target_session_attrs=read-write', 'reads')).toMatch(/than any/)
})
