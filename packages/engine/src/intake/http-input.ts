import type { HttpTarget } from '../job/definition.ts'
import { hasTemplate } from '../job/template.ts'
import { REDACTED } from './understand-http.ts'

/** A target in the form that people write. */
export type HttpView = Omit<HttpTarget, 'body'> & { body?: unknown }

/** A stored target as somebody could have written it. */
export function httpInput({ body, ...target }: HttpTarget): HttpView {
  if (body === undefined) return target
  return { ...target, body: 'json' in body ? body.json : 'text' in body ? body.text : body }
}

/** The same, for eyes: without a secret that stands in the job itself. */
export function shownHttp(target: HttpTarget): HttpView {
  const { auth } = target
  if (auth === undefined || hasTemplate(auth.clientSecret)) return httpInput(target)
  return httpInput({ ...target, auth: { ...auth, clientSecret: REDACTED } })
}
