const ESCAPE = '\u0001'
const NUL = '\u0000'

/**
 * SQLite can store a NUL in a text, but PostgreSQL cannot. So a NUL is stored as two characters, and the escape character as two others.
 * Every text comes back unchanged, and texts keep the order of their bytes.
 */
export function escapeNul(text: string): string {
  if (!text.includes(NUL) && !text.includes(ESCAPE)) return text
  return text.replaceAll(ESCAPE, `${ESCAPE}\u0002`).replaceAll(NUL, `${ESCAPE}${ESCAPE}`)
}

/** Restores the text that was escaped. */
export function unescapeNul(text: string): string {
  if (!text.includes(ESCAPE)) return text
  const [first = '', ...rest] = text.split(ESCAPE)
  let plain = first
  for (let at = 0; at < rest.length; at++) {
    const after = rest[at] ?? ''
    // Between two escapes in a row there is nothing.
    if (after === '' && at + 1 < rest.length) {
      at += 1
      plain += NUL + (rest[at] ?? '')
    } else plain += ESCAPE + after.slice(1)
  }
  return plain
}
