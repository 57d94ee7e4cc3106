const ESCAPE = '\u0001'
const NUL = '\u0000'

/**
 * Escapes a text, because PostgreSQL (unlike SQLite) cannot store a NUL. A NUL becomes two characters, and the escape character becomes two
 * other characters. `unescapeNul` restores every text, and escaped texts sort in the same order as the originals.
 */
export function escapeNul(text: string): string {
  if (!text.includes(NUL) && !text.includes(ESCAPE)) return text
  return text.replaceAll(ESCAPE, `${ESCAPE}\u0002`).replaceAll(NUL, `${ESCAPE}${ESCAPE}`)
}

export function unescapeNul(text: string): string {
  if (!text.includes(ESCAPE)) return text
  const [first = '', ...rest] = text.split(ESCAPE)
  let plain = first
  for (let at = 0; at < rest.length; at++) {
    const after = rest[at] ?? ''
    // An empty part lies between two escape characters, which stand for a NUL.
    if (after === '' && at + 1 < rest.length) {
      at += 1
      plain += NUL + (rest[at] ?? '')
    } else plain += ESCAPE + after.slice(1)
  }
  return plain
}
