import { SystemClock } from '@belfry/engine'
import type { Command } from '../../command/command.ts'
import { readEventBridge } from '../../import/eventbridge.ts'
import { FILE_OPERAND, IMPORT_FLAGS, runImport } from '../../import/run-import.ts'

export const importEventBridge: Command = {
  name: 'import eventbridge',
  summary: 'take over schedules and rules of Amazon EventBridge, from what `aws` prints',
  operands: [FILE_OPERAND],
  flags: IMPORT_FLAGS,
  details: `  aws scheduler get-schedule --name nightly | belfry import eventbridge -
  aws events list-rules | belfry import eventbridge - --apply`,
  run: (call) =>
    runImport(call, {
      usualQueue: 'eventbridge',
      read: (text, options) => readEventBridge(text, { ...options, now: new SystemClock().now() }),
    }),
}
