import { readFile } from 'node:fs/promises'
import { type Flags, type FlagTable, given } from '../../command/flags.ts'
import { UsageError } from '../../usage-error.ts'
import { SCHEDULE_FLAGS, scheduleFields } from './schedule-flags.ts'

export const JOB_FLAGS: FlagTable = {
  name: { value: 'text', about: 'a name, unique among the jobs that still have a future' },
  ...SCHEDULE_FLAGS,
  url: { value: 'url', about: 'call this URL' },
  method: { value: 'method', about: 'with this method (POST)' },
  header: { value: 'name: value', about: 'with this header', multiple: true },
  body: { value: 'text', about: 'with this body: JSON if it is JSON, else text; @file reads a file' },
  queue: { value: 'name', about: 'instead of a URL: for the workers of this queue; beside one: limits of its own' },
  payload: { value: 'json', about: 'what the workers get; the body, for a URL' },
  'payload-ref': { value: 'ref', about: 'a payload that was put before' },
  timeout: { value: 'duration', about: 'per attempt (30s for URLs, 5m for workers)' },
  'max-attempts': { value: 'n', about: 'tries before it is a dead letter (5)' },
  priority: { value: '0-9', about: 'higher goes first (5)' },
  overlap: {
    value: 'policy',
    about: 'when a run of it is still alive: allow, skip, buffer_one, buffer_latest, … (skip)',
  },
  jitter: { value: 'duration', about: 'delay each run by a stable part of this' },
  'start-deadline': { value: 'duration', about: 'a run that has not started by then is skipped' },
  delivery: { value: 'promise', about: 'at_least_once or at_most_once (at_least_once)' },
  label: { value: 'name=value', about: 'a label', multiple: true },
  'idempotency-key': { value: 'text', about: 'the same request with the same key is one job' },
  file: { value: 'path', about: 'the job as JSON in a file, or - for standard input; flags win over it' },
}

type Fields = Record<string, unknown>

/** The job as the API takes it. Whether it makes sense is the server's to say. */
export async function readJob(flags: Flags, input: () => Promise<string>): Promise<Fields> {
  const base = await readBase(flags.text('file'), input)
  const job: Fields = { ...base, ...given(plainFields(flags)) }
  const http = given(await httpFields(flags))
  if (Object.keys(http).length > 0) job.http = { ...(base.http as Fields | undefined), ...http }
  const maxAttempts = flags.number('max-attempts')
  if (maxAttempts !== undefined) job.retry = { ...(base.retry as Fields | undefined), maxAttempts }
  if (flags.is('label')) job.labels = { ...(base.labels as Fields | undefined), ...pairs(flags, 'label', '=') }
  if (Object.keys(job).length > 0) return job
  throw new UsageError(
    'there is nothing to run: give --url, --queue or --payload (and --when, --every, --cron, --at or --delay), or --file',
  )
}

function plainFields(flags: Flags): Fields {
  return {
    name: flags.text('name'),
    ...scheduleFields(flags),
    queue: flags.text('queue'),
    payload: flags.json('payload'),
    payloadRef: flags.text('payload-ref'),
    timeout: flags.text('timeout'),
    priority: flags.number('priority'),
    overlap: flags.text('overlap'),
    jitter: flags.text('jitter'),
    startDeadline: flags.text('start-deadline'),
    delivery: flags.text('delivery'),
    idempotencyKey: flags.text('idempotency-key'),
  }
}

async function httpFields(flags: Flags): Promise<Fields> {
  return {
    url: flags.text('url'),
    method: flags.text('method')?.toUpperCase(),
    headers: flags.is('header') ? pairs(flags, 'header', ':') : undefined,
    body: await readBody(flags.text('body')),
  }
}

async function readBody(text: string | undefined): Promise<unknown> {
  if (text === undefined) return undefined
  const content = text.startsWith('@') ? await readText('--body', text.slice(1)) : text
  try {
    return JSON.parse(content)
  } catch {
    return content
  }
}

async function readBase(path: string | undefined, input: () => Promise<string>): Promise<Fields> {
  if (path === undefined) return {}
  const text = path === '-' ? await input() : await readText('--file', path)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new UsageError(`--file ${path} is not JSON: ${(error as Error).message}`)
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw new UsageError(`--file ${path} holds no job: it must be one JSON object`)
}

async function readText(flag: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new UsageError(`${flag} ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

function pairs(flags: Flags, name: string, sign: string): Record<string, string> {
  return Object.fromEntries(
    flags.all(name).map((text) => {
      const at = text.indexOf(sign)
      if (at > 0) return [text.slice(0, at).trim(), text.slice(at + 1).trim()]
      throw new UsageError(
        `--${name} is ${JSON.stringify(text)}, but must look like "name${sign}${sign === ':' ? ' ' : ''}value"`,
      )
    }),
  )
}
