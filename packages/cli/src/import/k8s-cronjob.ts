import { clockChangesOfKubernetes } from './clock-changes.ts'
import { isRecord, NotTaken, type Plan, type Read, type ReadOptions, readEntry, workDiffers } from './entry.ts'
import { readK8sDocuments } from './k8s-documents.ts'
import { limitsOf } from './k8s-limits.ts'
import { readPod } from './k8s-pod.ts'
import { hasClockChanges, readZone } from './zone.ts'

type Fields = Record<string, unknown>

/** The CronJobs of manifests; other resources are passed over. */
export function readK8sCronJobs(text: string, options: ReadOptions): Read {
  const documents = readK8sDocuments(text)
  const passedOver = documents.flatMap((document) =>
    'resource' in document && document.resource.kind !== 'CronJob'
      ? [`${document.place}: ${titleOf(document.resource)}`]
      : [],
  )
  const entries = documents.flatMap((document) => {
    if ('problem' in document)
      return [{ place: document.place, source: '', plan: { kind: 'refused' as const, reason: document.problem } }]
    const { place, resource } = document
    return resource.kind === 'CronJob' ? [readEntry(place, titleOf(resource), () => planOf(resource, options))] : []
  })
  return { entries, passedOver }
}

function planOf(resource: Fields, { queue, timezone }: ReadOptions): Plan {
  const metadata = part(resource, 'metadata')
  const spec = part(resource, 'spec')
  if (!/^batch\/v1(beta1)?$/.test(String(resource.apiVersion)))
    throw new NotTaken(`its apiVersion is ${resource.apiVersion}, and only batch/v1 is known`)
  if (typeof metadata.name !== 'string') throw new NotTaken('it has no metadata.name')
  if (typeof spec.schedule !== 'string') throw new NotTaken('it has no spec.schedule')
  const [, prefix, expression = ''] = /^(?:(?:CRON_)?TZ=(\S+)\s+)?(.*)$/s.exec(spec.schedule.trim()) ?? []
  const own = typeof spec.timeZone === 'string' ? spec.timeZone : prefix
  const zone = readZone(own ?? timezone ?? 'UTC')
  const every = /^@every\s+(\S+)$/.exec(expression)?.[1]
  const work = part(part(spec, 'jobTemplate'), 'spec')
  const pod = readPod(work.template)
  const limits = limitsOf(spec, work)
  return {
    kind: 'job',
    name: metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`,
    isSuspended: spec.suspend === true,
    job: {
      ...(every === undefined ? { cron: expression } : { every }),
      timezone: zone,
      queue,
      payload: pod.payload,
      ...limits.fields,
      labels: { ...labelsOf(metadata.labels), 'imported-from': 'k8s-cronjob' },
    },
    differences: [
      workDiffers('containers', queue),
      ...limits.differences,
      ...pod.differences,
      ...(own || timezone
        ? []
        : ['without timeZone Kubernetes goes by the zone of its controllers: UTC is taken (--timezone says another)']),
      ...(every === undefined ? [] : ['@every counts from the import']),
      ...(every === undefined && hasClockChanges(zone) ? clockChanges(expression) : []),
    ],
  }
}

function clockChanges(cron: string): string[] {
  const sentence = clockChangesOfKubernetes(cron)
  return sentence === null ? [] : [sentence]
}

const part = (of: Fields, name: string): Fields => (isRecord(of[name]) ? of[name] : {})

const labelsOf = (labels: unknown): Record<string, string> =>
  isRecord(labels) ? Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)])) : {}

function titleOf(resource: Fields): string {
  const { name, namespace } = part(resource, 'metadata')
  return [resource.kind ?? 'a resource without kind', [namespace, name].filter(Boolean).join('/')]
    .filter(Boolean)
    .join(' ')
}
