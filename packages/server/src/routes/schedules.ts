import type { PreviewInput } from '@belfry/engine'
import type { App } from '../app.ts'
import { preview, previewInput } from '../schemas/schedule.ts'
import { judgedBelow } from '../validation.ts'

export function scheduleRoutes(app: App): void {
  app.post(
    '/v1/schedules/preview',
    {
      config: { scope: 'read' },
      schema: {
        tags: ['Schedules'],
        summary: 'When a job would run, without making it',
        description:
          'Takes the fields of a job that say when it runs, and answers the next times in UTC and in the zone, with those marked that a change of the clocks concerns. What would be refused when creating the job is refused here.',
        body: judgedBelow<PreviewInput>(previewInput),
        response: { 200: preview },
      },
    },
    ({ tenant, body }) => tenant.jobs.preview(body),
  )
}
