import type { Complaints } from '../input/read-fields.ts'
import { nearestName } from '../job/nearest-name.ts'
import { hasTemplate, secretOf, TEMPLATE_NAMES, templatesIn } from '../job/template.ts'
import { shown } from '../schedule/not-understood.ts'

/** A misspelt template would be sent as it stands, a secret's name instead of the secret; so what is not known is refused. */
export function complainAboutTemplates(complaints: Complaints, path: string, text: string): void {
  if (!hasTemplate(text)) return
  const found = templatesIn(text)
  for (const name of found) {
    if (TEMPLATE_NAMES.some((known) => known === name) || secretOf(name) !== undefined) continue
    complaints.add(path, `${shown(`{{${name}}}`)} is not a template${hintOf(name)}`, suggestionFor(name))
  }
  if (text.split('{{').length - 1 > found.length) complaints.add(path, 'holds "{{" that no "}}" closes')
}

const hintOf = (name: string): string =>
  /^secret\b/i.test(name)
    ? ': a secret has 1 to 128 letters, digits, ".", "_" and "-"'
    : '; a payload may hold any text'

function suggestionFor(name: string): string | undefined {
  const secret = /^secrets?\s*[:.]\s*([A-Za-z0-9._-]{1,128})$/i.exec(name)?.[1]
  if (secret !== undefined) return `{{secret:${secret}}}`
  const near = nearestName(name, TEMPLATE_NAMES)
  return near === undefined ? undefined : `{{${near}}}`
}
