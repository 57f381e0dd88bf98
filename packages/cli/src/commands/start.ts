import type { Command } from '../command/command.ts'

export const start: Command = {
  name: 'start',
  summary: 'run a node (also without any word)',
  operands: [],
  flags: {},
  details: `  PORT                          8080      where it serves; 0 picks a free port
  BELFRY_DATA_DIR               .belfry   where the embedded database and the made keys are kept
  BELFRY_DATABASE_URL                     a PostgreSQL of your own instead of the embedded one
  BELFRY_DATABASE_READ_URL                a replica for lists and history
  BELFRY_ADMIN_KEY                        32 characters or more; without it one is made and kept in the data directory
  BELFRY_ENCRYPTION_KEY                   32 bytes in base64 or hex, for secrets and payloads
  BELFRY_ALLOW_PRIVATE_TARGETS  off       1 lets HTTP targets be on loopback and private networks
  BELFRY_PUBLIC_URL                       how targets reach this installation, for callbacks
  BELFRY_PROCESSES              1         processes behind the port
  BELFRY_ROLES                  all       of api, promoter, dispatcher, archivist`,
  async run({ environment, terminal }) {
    // Loaded only here: whoever asks a running node need not wait for all that a node is made of.
    const { runStart } = await import('../start/run-start.ts')
    await runStart(environment, terminal)
  },
}
