import { readFile } from 'node:fs/promises'
import { Problem } from '../api/problem.ts'
import { type Call, JSON_FLAG, type Operand, TENANT_FLAG } from '../command/command.ts'
import type { FlagTable } from '../command/flags.ts'
import { UsageError } from '../usage-error.ts'
import { NotTaken, type Read, type ReadOptions } from './entry.ts'
import { refusedOf, reportDocument, reportText } from './report.ts'
import { applyEntries, previewEntries, type Reported } from './take-over.ts'
import { readZone } from './zone.ts'

export const FILE_OPERAND: Operand = { name: 'file', about: 'a file, or - for standard input' }

export const IMPORT_FLAGS: FlagTable = {
  apply: { about: 'create the jobs; without it nothing is changed' },
  timezone: { value: 'zone', about: 'of entries that name none: Europe/Berlin (UTC)' },
  queue: { value: 'name', about: 'the queue that they become work for' },
  ...TENANT_FLAG,
  ...JSON_FLAG,
}

interface Source {
  usualQueue: string
  read(text: string, options: ReadOptions): Read
}

/** Reads a foreign file, says what becomes of it, and with --apply makes it so. */
export async function runImport(call: Call, { usualQueue, read }: Source): Promise<void> {
  const { flags, terminal, api } = call
  const [file = ''] = call.operands
  const timezone = flags.text('timezone')
  const text = file === '-' ? await terminal.input() : await readText(file)
  const zone = timezone === undefined ? {} : { timezone: readOrComplain('--timezone', () => readZone(timezone)) }
  const found = readOrComplain(file, () => read(text, { queue: flags.text('queue') ?? usualQueue, ...zone }))
  if (found.entries.length === 0) throw new UsageError(`${file} holds nothing that could be taken over`)
  const isApplied = flags.is('apply')
  const previewed = await previewOf(call, found, isApplied ? 'needed' : 'wanted')
  const entries = isApplied ? await applyEntries(await api(), previewed) : previewed
  terminal.answer(reportDocument(entries, found), reportText(entries, found, { isApplied }))
  const refused = refusedOf(entries)
  if (refused.length === 0) return
  throw new Problem(`not taken over: ${refused.map(({ place }) => place).join(', ')}`, { code: 'not_taken_over' })
}

/** A report is of use without a node too; it then lacks what only a node can say. */
async function previewOf({ api, terminal }: Call, { entries }: Read, need: 'needed' | 'wanted'): Promise<Reported[]> {
  try {
    return await previewEntries(await api(), entries)
  } catch (error) {
    const isAway = error instanceof UsageError || (error instanceof Problem && error.status === 0)
    if (!isAway || need === 'needed') throw error
    terminal.note(`the times were not checked: ${error.message}`)
    return [...entries]
  }
}

/** What is wrong with the whole is a mistake of whoever asked. */
function readOrComplain<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof NotTaken) throw new UsageError(`${what} cannot be read: ${error.message}`)
    throw error
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new UsageError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}
