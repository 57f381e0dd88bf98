import { isUtf8 } from 'node:buffer'
import { BelfryError, type CalendarInput } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import { calendar, calendarInput, calendarItem, calendarName } from '../schemas/calendar.ts'
import { noContent, pageOf, pageQuery } from '../schemas/page.ts'
import { judgedBelow } from '../validation.ts'

/** A mebibyte of iCalendar, of which JSON may need twice as much. */
const BODY_LIMIT_BYTES = 2_621_440

const tags = ['Calendars']
const params = Type.Object({ name: calendarName }, { additionalProperties: false })
/** Such a body has become a field before anybody looks at it; the engine says by lines what is wrong with it. */
const icalendarText = judgedBelow<CalendarInput>(
  Type.Unsafe<CalendarInput>({ type: 'string', description: 'A calendar file (RFC 5545), up to 1 MiB.' }),
)

export function calendarRoutes(app: App): void {
  app.get(
    '/v1/calendars',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'List calendars',
        description: 'By name, without their days.',
        querystring: pageQuery({}),
        response: { 200: pageOf(calendarItem) },
      },
    },
    ({ tenant, query }) => tenant.calendars.list(query),
  )

  app.get(
    '/v1/calendars/:name',
    {
      config: { scope: 'read' },
      schema: { tags, summary: 'Get a calendar with its days', params, response: { 200: calendar } },
    },
    ({ tenant, params }) => tenant.calendars.get(params.name),
  )

  // Calendar files are taken only here, so this route has a place of its own.
  app.register(async (own: App) => {
    own.addContentTypeParser(
      'text/calendar',
      { parseAs: 'buffer', bodyLimit: BODY_LIMIT_BYTES },
      (_request, body, done) => {
        const bytes = body as Buffer
        if (isUtf8(bytes)) done(null, { icalendar: bytes.toString() })
        else done(new BelfryError('invalid_request', 'the calendar file is not UTF-8'))
      },
    )
    putRoute(own)
  })

  app.delete(
    '/v1/calendars/:name',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Delete a calendar that no job names',
        description: '409 `calendar_in_use` while active or paused jobs name it; the detail says how many.',
        params,
        response: { 204: noContent },
      },
    },
    async ({ tenant, params }, reply) => {
      await tenant.calendars.delete(params.name)
      return reply.status(204).send()
    },
  )
}

function putRoute(app: App): void {
  app.put(
    '/v1/calendars/:name',
    {
      config: { scope: 'write' },
      bodyLimit: BODY_LIMIT_BYTES,
      schema: {
        tags,
        summary: 'Write a calendar, for `exclude` in schedules',
        description:
          'As JSON or as a calendar file (`text/calendar`). It replaces all that the calendar held. Jobs that name it follow at once, one after the other: what was due before the change stays due, and each job whose next time moves lists it as `replan` among its changes.',
        params,
        consumes: ['application/json', 'text/calendar'],
        body: {
          content: { 'application/json': { schema: calendarInput }, 'text/calendar': { schema: icalendarText } },
        },
        response: { 200: calendar, 201: calendar },
      },
    },
    async ({ tenant, params, body }, reply) => {
      const { created } = await tenant.calendars.put(params.name, body as CalendarInput)
      return reply.status(created ? 201 : 200).send(await tenant.calendars.get(params.name))
    },
  )
}
