const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escaped = (text: unknown): string => String(text).replace(/[&<>"']/g, (one) => ESCAPES[one] as string)

/** A description: what stands in backticks is code, an empty line begins a paragraph. */
export const inline = (text: string): string => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>')

export const paragraphs = (text: string): string =>
  text
    .split('\n\n')
    .map((one) => `<p>${inline(one)}</p>`)
    .join('')

export const slug = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
