import { Belfry, lineLogger } from '@belfry/engine'
import type { Command } from '../command/command.ts'
import { engineOptions } from '../start/engine-options.ts'
import { readStartOptions } from '../start/start-options.ts'

export const migrate: Command = {
  name: 'migrate',
  summary: 'bring the schema of the database up to date, and end',
  operands: [],
  flags: {},
  details: `A node does this by itself when it starts. Run it before, when nodes may not change the schema or a deployment
wants to see it done first. BELFRY_DATABASE_URL names the database; without it, the embedded one is meant.`,
  async run({ environment, terminal }) {
    const options = readStartOptions(environment)
    const logger = lineLogger((line) => terminal.note(line))
    // A node that neither promotes nor performs anything: it prepares the schema like any other, and leaves.
    const belfry = await Belfry.start({
      ...engineOptions({ ...options, roles: ['api'] }),
      logger: { ...logger, debug: () => {} },
    })
    await belfry.stop()
    terminal.answer({ status: 'up_to_date' }, 'the schema is up to date')
  },
}
