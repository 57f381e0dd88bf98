/** PostgreSQL's text cannot hold NUL: whatever comes from outside and was not checked at the door is cleaned of it. */
export const withoutNul = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\u{FFFD}') : text)
