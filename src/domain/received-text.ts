/** Control characters, and marks that change the direction of text. With them a page would not show what was sent. */
const HIDDEN = /(?![\t\n])[\p{Cc}\u{202a}-\u{202e}\u{2066}-\u{2069}]/gu

/**
 * Shows received bytes or text safely. Everything that is not text, or would show as something else, is replaced by marks. A carriage
 * return before a line feed is left out.
 */
export function receivedText(received: Uint8Array | string): string {
  const text = typeof received === 'string' ? received : new TextDecoder('utf-8', { ignoreBOM: true }).decode(received)
  return text.replaceAll('\r\n', '\n').replace(HIDDEN, '\u{fffd}')
}

/** The first line of received bytes, short enough for a table. */
export function firstLine(received: Uint8Array): string {
  const [line = ''] = receivedText(received).trim().split('\n')
  return line.length > 120 ? `${line.slice(0, 120)}…` : line
}
