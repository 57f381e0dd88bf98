import type { AdminKey } from './admin-key.ts'
import type { Environment, StartOptions } from './start-options.ts'

export interface Welcome {
  url: string
  options: StartOptions
  adminKey: AdminKey | null
  environment: Environment
}

/** What a start says once it serves: one line, and the first time everything that a newcomer needs to try it. */
export function welcome({ url, options, adminKey, environment }: Welcome): string {
  const ready = `belfry ready on ${url}`
  if (adminKey === null || !options.roles.includes('api')) return ready
  if (!adminKey.made) return `${ready}\nadmin key: in ${adminKey.file} · documentation: ${url}/docs`
  const command = commandFor(url, environment)
  return `${ready}

Admin key, shown this once (kept in ${adminKey.file}, for your eyes only):

  ${adminKey.key}

A job that calls a URL every 10 seconds:

  ${createLine(url, adminKey.key, options)}

Its runs, and its end (in another terminal, from this directory):

  ${command} runs list --job hello
  ${command} jobs cancel hello

Documentation: ${url}/docs`
}

/** Its own health needs no network, but calling loopback has to be allowed; otherwise a public page. */
function createLine(url: string, key: string, { allowPrivateTargets }: StartOptions): string {
  const target = allowPrivateTargets ? `${url}/healthz` : 'https://example.com/'
  const job = { name: 'hello', every: '10s', http: { method: 'GET', url: target } }
  return `curl -s ${url}/v1/jobs -H 'authorization: Bearer ${key}' -H 'content-type: application/json' -d '${JSON.stringify(job)}'`
}

/** The command as it can be typed here: with what differs from its defaults. */
function commandFor(url: string, environment: Environment): string {
  const settings: string[] = []
  if (url !== 'http://127.0.0.1:8080') settings.push(`BELFRY_URL=${url}`)
  if (environment.BELFRY_DATA_DIR) settings.push(`BELFRY_DATA_DIR=${quoted(environment.BELFRY_DATA_DIR)}`)
  return [...settings, 'npx belfry'].join(' ')
}

const quoted = (text: string): string => (/^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
