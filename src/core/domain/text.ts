import { hash } from 'node:crypto'

/** Replaces lone surrogates and NUL by U+FFFD, so that every store accepts the text. The bytes that were received stay as they are (DOMAIN 5.3). */
export function derivedText(text: string): string {
  return text.isWellFormed() && !text.includes('\u0000') ? text : text.toWellFormed().replaceAll('\u0000', '\ufffd')
}

/** Compares strings by their UTF-8 bytes: negative, 0 or positive. `<` would wrongly put surrogates before U+E000..U+FFFF. */
export function compareBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at)
    const right = b.charCodeAt(at)
    if (left !== right) return byteRank(left) - byteRank(right)
  }
  return a.length - b.length
}

/** Returns the rank of a UTF-16 unit. Surrogates rank above all other units, because they stand for the highest code points. */
function byteRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/** Returns the bytewise greatest text (DOMAIN 2.5). Empty texts come last. Undefined: `texts` is empty. */
export function greatestText(texts: readonly string[]): string | undefined {
  return texts.reduce<string | undefined>((best, text) => (best === undefined || compareBytes(text, best) > 0 ? text : best), undefined)
}

/** Control characters, and characters that change the direction of text. With them, a page could show something else than what was sent. */
const HIDDEN = /(?![\t\n])[\p{Cc}\u{202a}-\u{202e}\u{2066}-\u{2069}]/gu

/**
 * Makes received bytes or text safe to show. U+FFFD replaces invalid UTF-8 and the characters in `HIDDEN`. A carriage return before a line
 * feed is left out.
 */
export function receivedText(received: Uint8Array | string): string {
  const text = typeof received === 'string' ? received : new TextDecoder('utf-8', { ignoreBOM: true }).decode(received)
  return text.replaceAll('\r\n', '\n').replace(HIDDEN, '\u{fffd}')
}

/** A word with a digit may identify a parcel. */
const WORDS_WITH_DIGITS = /[^\s"'(),;:=]*\d[^\s"'(),;:=]*/g

/** Returns the first line of received bytes with `…` in place of each word with a digit, for what stays when a parcel is erased. */
export function unnamedLine(received: Uint8Array): string {
  return firstLine(received).replace(WORDS_WITH_DIGITS, '…')
}

/** Returns the first line of received bytes as safe text, short enough for a table. */
export function firstLine(received: Uint8Array): string {
  const [line = ''] = receivedText(received).trim().split('\n')
  return line.length > 120 ? `${line.slice(0, 120)}…` : line
}

/** Returns the SHA-256 of bytes, or of a text in UTF-8, as 43 characters that are safe in headers and URLs (base64url). */
export function digest(content: string | Uint8Array): string {
  return hash('sha256', content, 'base64url')
}

/** Returns a strong entity tag (RFC 9110, 8.8.3). Two answers have the same tag only if their bytes and languages are the same. */
export function entityTag(body: string, contentLanguage: string): string {
  return `"${digest(`${contentLanguage}\n${body}`)}"`
}

/** Returns the candidate that a mistyped name most likely means; null: no candidate is close. */
export function suggestName(written: string, candidates: readonly string[]): string | null {
  const folded = fold(written)
  let best: { readonly name: string; readonly distance: number } | null = null
  for (const name of candidates) {
    const distance = editDistance(folded, fold(name))
    if (distance <= Math.min(2, Math.floor(name.length / 3)) && (best === null || distance < best.distance)) best = { name, distance }
  }
  return best?.name ?? null
}

const PREFIX_MIN = 3

/** Like `suggestName`. If no candidate is close, returns the one with the longest common beginning of at least 3 characters; null: none has one. */
export function nearestName(written: string, candidates: readonly string[]): string | null {
  const folded = fold(written)
  const [first] = candidates
    .map((name) => ({ name, shared: sharedPrefix(folded, fold(name)), distance: editDistance(folded, fold(name)) }))
    .filter(({ shared }) => shared >= PREFIX_MIN)
    .toSorted((a, b) => b.shared - a.shared || a.distance - b.distance)
  return suggestName(written, candidates) ?? first?.name ?? null
}

function sharedPrefix(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length += 1
  return length
}

/** Removes differences of case and separators, the most common slips: `base_url` means `baseUrl`. */
function fold(name: string): string {
  return name.slice(0, 100).toLowerCase().replace(/[-_]/g, '')
}

/** Returns the least number of insertions, deletions, replacements and swaps of neighbours that turn one text into the other. */
function editDistance(a: string, b: string): number {
  let older: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (older[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY
      row.push(Math.min(replaced, swapped, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    older = previous
    previous = row
  }
  return previous[b.length] ?? 0
}
