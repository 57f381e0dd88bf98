import { isRecord, NotTaken } from './entry.ts'

/** What is taken from a pod: how to run its first container. */
const OF_POD = ['containers', 'restartPolicy']
const OF_CONTAINER = ['name', 'image', 'command', 'args', 'env', 'workingDir']

export interface Pod {
  payload: Record<string, unknown>
  differences: string[]
}

/** Values of secrets and of the cluster are named, never copied: they are not in the file. */
export function readPod(template: unknown): Pod {
  const spec = isRecord(template) && isRecord(template.spec) ? template.spec : {}
  const containers = Array.isArray(spec.containers) ? spec.containers.filter(isRecord) : []
  const [first, ...others] = containers
  if (first === undefined) throw new NotTaken('spec.jobTemplate.spec.template.spec has no containers')
  if (typeof first.image !== 'string') throw new NotTaken('its container has no image')
  const { env, absent } = readEnv(Array.isArray(first.env) ? first.env.filter(isRecord) : [])
  const payload = Object.fromEntries(
    ['image', 'command', 'args', 'workingDir']
      .filter((field) => first[field] !== undefined)
      .map((field) => [field, first[field]]),
  )
  return {
    payload: { ...payload, ...(Object.keys(env).length === 0 ? {} : { env }) },
    differences: [
      ...absent,
      ...envFrom(first.envFrom),
      ...notTaken('the pod', Object.keys(spec), OF_POD),
      ...notTaken('the container', Object.keys(first), [...OF_CONTAINER, 'envFrom']),
      ...(others.length === 0
        ? []
        : [`only the container ${first.name} is taken over, not ${others.map(({ name }) => name).join(', ')}`]),
    ],
  }
}

function readEnv(variables: readonly Record<string, unknown>[]): { env: Record<string, string>; absent: string[] } {
  const env: Record<string, string> = {}
  const absent: string[] = []
  for (const { name, value, valueFrom } of variables) {
    if (isRecord(valueFrom))
      absent.push(`the variable ${name} comes from ${sourceOf(valueFrom)}: its value is not copied`)
    else env[String(name)] = value === undefined ? '' : String(value)
  }
  return { env, absent }
}

function sourceOf(valueFrom: Record<string, unknown>): string {
  const { secretKeyRef, configMapKeyRef, fieldRef, resourceFieldRef } = valueFrom
  if (isRecord(secretKeyRef)) return `the key ${secretKeyRef.key} of the secret ${secretKeyRef.name}`
  if (isRecord(configMapKeyRef)) return `the key ${configMapKeyRef.key} of the config map ${configMapKeyRef.name}`
  if (isRecord(fieldRef)) return `the pod's ${fieldRef.fieldPath}`
  return isRecord(resourceFieldRef) ? `the container's ${resourceFieldRef.resource}` : 'elsewhere'
}

function envFrom(sources: unknown): string[] {
  if (!Array.isArray(sources)) return []
  return sources.filter(isRecord).map(({ secretRef, configMapRef }) => {
    if (isRecord(secretRef)) return `the variables of the secret ${secretRef.name} are not copied`
    return `the variables of the config map ${isRecord(configMapRef) ? configMapRef.name : ''} are not copied`
  })
}

function notTaken(of: string, there: readonly string[], taken: readonly string[]): string[] {
  const left = there.filter((field) => !taken.includes(field))
  if (left.length === 0) return []
  return [
    `${left.join(', ')} of ${of} ${left.length === 1 ? 'is' : 'are'} not taken over: that is up to whoever runs the image`,
  ]
}
