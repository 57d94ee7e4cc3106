const ESCAPED = /\\u([0-9A-Fa-f]{4})|\\[bfnrt"\\/]/g
const WORD = /[A-Z0-9]+/g
const [LENGTH_MIN, LENGTH_MAX] = [4, 40]

/**
 * Returns the words in a pushed body that may be identifiers, in upper case. The body may be invalid JSON or in UTF-16, and may contain
 * escaped characters. A compressed body must be decompressed first.
 */
export function wordsInBody(body: Uint8Array): ReadonlySet<string> {
  const text = Buffer.from(body)
    .toString('latin1')
    .replaceAll('\0', '')
    .replace(ESCAPED, (_escape, code: string | undefined) => (code === undefined ? ' ' : String.fromCharCode(Number.parseInt(code, 16))))
    .toUpperCase()
  return new Set((text.match(WORD) ?? []).filter(({ length }) => length >= LENGTH_MIN && length <= LENGTH_MAX))
}
