/** How much of a body a page shows, in characters. The rest is in the file that can be downloaded. */
export const SHOWN_MAX = 64 * 1024

/** As deep as the relay reads events. Deeper ones are not indented, which would make them very long. */
const INDENTED_DEPTH_MAX = 64

/** Controls, and marks that turn the direction of what follows, so that a page would show something else than was sent. */
const HIDDEN = /(?![\t\n])[\p{Cc}\u{202a}-\u{202e}\u{2066}-\u{2069}]/gu

/** What was received, as text: what is no text, or would not show as what it is, is replaced by marks. A carriage return before a line feed is left out. */
export function receivedText(received: Uint8Array | string): string {
  const text = typeof received === 'string' ? received : new TextDecoder('utf-8', { ignoreBOM: true }).decode(received)
  return text.replaceAll('\r\n', '\n').replace(HIDDEN, '\u{fffd}')
}

/** The first line of what was received, short enough for a table. */
export function firstLine(received: Uint8Array): string {
  const [line = ''] = receivedText(received).trim().split('\n')
  return line.length > 120 ? `${line.slice(0, 120)}…` : line
}

/** JSON with a line for each member. Every name and value stays as it was written; null: it is no JSON, or longer or nested more deeply than a page shows. */
export function indentJson(text: string): string | null {
  if (text.length > SHOWN_MAX || !isJson(text)) return null
  const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"|\[\s*\]|\{\s*\}|[[\]{},:]|[^\s"[\]{},:]+/gs) ?? []
  const pieces: string[] = []
  let depth = 0
  const line = () => `\n${'  '.repeat(depth)}`
  for (const token of tokens) {
    if (token === '[' || token === '{') {
      depth += 1
      if (depth > INDENTED_DEPTH_MAX) return null
      pieces.push(token, line())
    } else if (token === ']' || token === '}') {
      depth -= 1
      pieces.push(line(), token)
    } else if (token === ',') pieces.push(token, line())
    else pieces.push(token === ':' ? ': ' : token)
  }
  return pieces.join('')
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
