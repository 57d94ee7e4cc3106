/** The most characters of a body that a page shows. The whole body can be downloaded. */
export const SHOWN_MAX = 64 * 1024

/** The relay accepts events up to this depth. Deeper JSON is not indented, because the indentation would make it very long. */
const INDENTED_DEPTH_MAX = 64

/**
 * Returns JSON with each member on its own line, and each name and value exactly as received. Null: the text is not JSON, is longer than a
 * page shows, or is nested too deeply.
 */
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
