import type { Command } from '../../command/command.ts'
import { readK8sCronJobs } from '../../import/k8s-cronjob.ts'
import { FILE_OPERAND, IMPORT_FLAGS, runImport } from '../../import/run-import.ts'

export const importK8sCronJob: Command = {
  name: 'import k8s-cronjob',
  summary: 'take over CronJobs of Kubernetes, from YAML or JSON',
  operands: [FILE_OPERAND],
  flags: IMPORT_FLAGS,
  details: '  kubectl get cronjobs --all-namespaces -o yaml | belfry import k8s-cronjob -',
  run: (call) => runImport(call, { usualQueue: 'kubernetes', read: readK8sCronJobs }),
}
