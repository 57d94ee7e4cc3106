const FORM = /^[A-Z0-9]{4,40}$/

/**
 * Parses a tracking number or tracking id: trimmed, ASCII letters in upper case. `null`: it has not 4 to 40 letters and digits (DOMAIN
 * 1.1).
 */
export function parseIdentifier(text: unknown): string | null {
  if (typeof text !== 'string' || text.length > 200) return null
  if (FORM.test(text)) return text
  const folded = text.trim().replace(/[a-z]/g, (letter) => letter.toUpperCase())
  return FORM.test(folded) ? folded : null
}

/** How long an identifier that the carrier does not know is not asked about again, in milliseconds (DOMAIN 6.3). */
export const REFUSAL_HOLDS_MS = 24 * 60 * 60 * 1000
