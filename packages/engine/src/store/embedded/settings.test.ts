import { expect, test } from 'vitest'
import { settingsFile, settingsFor } from './settings.ts'

const MB = 1024 * 1024
const GB = 1024 * MB
const laptop = { memoryBytes: 16 * GB, freeDiskBytes: 200 * GB, sharedMemoryBytes: 8 * GB }

test('durability is never traded for speed, whatever the machine', () => {
  for (const memoryBytes of [256 * MB, 16 * GB, 1024 * GB]) {
    expect(settingsFor({ ...laptop, memoryBytes })).toMatchObject({
      fsync: 'on',
      synchronous_commit: 'on',
      full_page_writes: 'on',
    })
  }
})

test('an eighth of the memory is shared buffers, within bounds', () => {
  expect(settingsFor(laptop).shared_buffers).toBe('2048MB')
  expect(settingsFor({ ...laptop, memoryBytes: 256 * MB }).shared_buffers).toBe('128MB')
  expect(settingsFor({ ...laptop, memoryBytes: 512 * GB }).shared_buffers).toBe('4096MB')
})

test('the write-ahead log leaves room on a small disk', () => {
  expect(settingsFor(laptop).max_wal_size).toBe('8192MB')
  expect(settingsFor({ ...laptop, freeDiskBytes: 8 * GB }).max_wal_size).toBe('1024MB')
})

test.runIf(process.platform === 'linux')('a small /dev/shm, as Docker has it, is not used', () => {
  expect(settingsFor(laptop).dynamic_shared_memory_type).toBe('posix')
  expect(settingsFor({ ...laptop, sharedMemoryBytes: 64 * MB }).dynamic_shared_memory_type).toBe('mmap')
})

test('a quote in a value cannot end it, and own settings come last', () => {
  const text = settingsFile({ application_name: "it's" }, ['custom.conf'])
  expect(text).toContain("application_name = 'it''s'\n")
  expect(text.trimEnd().split('\n').at(-1)).toBe("include 'custom.conf'")
})
