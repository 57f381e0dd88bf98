import { bringUpToDate, lineLogger } from '@belfry/engine'
import { type Command, JSON_FLAG } from '../command/command.ts'
import { readStartOptions } from '../start/start-options.ts'

export const migrate: Command = {
  name: 'migrate',
  summary: 'bring the schema of the database up to date, and end',
  operands: [],
  flags: JSON_FLAG,
  details: `A node does this by itself when it starts. Run it before, when nodes may not change the schema or a deployment
wants to see it done first. BELFRY_DATABASE_URL names the database; without it, the embedded one is meant.`,
  async run({ environment, terminal }) {
    const { dataDir, database } = readStartOptions(environment)
    const logger = { ...lineLogger((line) => terminal.note(line)), debug: () => {} }
    await bringUpToDate({ dataDir, logger, ...(database === undefined ? {} : { database }) })
    terminal.answer({ status: 'up_to_date' }, 'the schema is up to date')
  },
}
