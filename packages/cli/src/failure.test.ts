import { BelfryError } from '@belfry/engine'
import { expect, test } from 'vitest'
import { describeFailure } from './failure.ts'
import { UsageError } from './usage-error.ts'

test('a mistake of the user ends with 2, anything else with 1', () => {
  expect(describeFailure(new UsageError('PORT is wrong'))).toEqual({ message: 'PORT is wrong', exitCode: 2 })
  const failure = new BelfryError('schema_too_new', 'the schema is newer')
  expect(describeFailure(failure)).toEqual({ message: 'the schema is newer (schema_too_new)', exitCode: 1 })
})

test('an option that the engine refuses is named as the variable it came from', () => {
  const complaints = [{ path: 'encryptionKey', message: 'is not the key' }]
  const error = new BelfryError('invalid_option', 'encryptionKey: is not the key', { complaints })
  expect(describeFailure(error)).toEqual({ message: 'BELFRY_ENCRYPTION_KEY is not the key', exitCode: 2 })
})

test('a bug shows where it is', () => {
  expect(describeFailure(new TypeError('oops')).message).toMatch(/TypeError: oops\n.*failure\.test\.ts/s)
})
