const ESCAPE = '\u0001'
const NUL = '\u0000'

/**
 * PostgreSQL keeps no NUL in a text, and SQLite does. It is kept as two characters, and so is the first of those, so that every text comes back as it was
 * and the order of texts stays that of their bytes.
 */
export function escapeNul(text: string): string {
  if (!text.includes(NUL) && !text.includes(ESCAPE)) return text
  return text.replaceAll(ESCAPE, `${ESCAPE}\u0002`).replaceAll(NUL, `${ESCAPE}${ESCAPE}`)
}

/** The text that was escaped. */
export function unescapeNul(text: string): string {
  if (!text.includes(ESCAPE)) return text
  const [first = '', ...rest] = text.split(ESCAPE)
  let plain = first
  for (let at = 0; at < rest.length; at++) {
    const after = rest[at] ?? ''
    // Two escapes in a row leave nothing between them.
    if (after === '' && at + 1 < rest.length) {
      at += 1
      plain += NUL + (rest[at] ?? '')
    } else plain += ESCAPE + after.slice(1)
  }
  return plain
}
