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
