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
