import type { Workload } from '../workload.ts'
import { measurePreEnqueued } from './pre-enqueued.ts'

export const payload: Workload = {
  name: 'payload',
  summary: 'the pre-enqueued runs again, each with a payload of 1 KB',
  rounds: { quick: 1, full: 3 },
  subjects: [
    {
      name: 'belfry',
      perform: (setting) => measurePreEnqueued('pre_enqueued_1kb', { text: 'x'.repeat(1_024 - 11) }, setting),
    },
  ],
}
