import { createListDecoder } from '../../domain/admin/watch-list.ts'
import { AppError } from '../../domain/errors.ts'

export interface LineBounds {
  readonly bytesMax: number
  /** The longest line, in characters. A longer line is cut off: the caller then refuses that line, and not the whole list. */
  readonly lineLengthMax: number
}

/**
 * Yields the lines of a body in UTF-8 or UTF-16 as they arrive. A line ends with LF or CRLF. Reads the body only as fast as the consumer
 * takes lines. Throws `body_too_large`.
 */
export async function* readLines(body: AsyncIterable<unknown>, { bytesMax, lineLengthMax }: LineBounds): AsyncGenerator<string> {
  const decoder = createListDecoder()
  let rest = ''
  let bytes = 0
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError('a body must be bytes')
    bytes += chunk.length
    if (bytes > bytesMax) throw new AppError('body_too_large', `A list may have at most ${bytesMax} bytes.`)
    const lines = (rest + decoder.write(chunk)).split('\n')
    rest = (lines.pop() ?? '').slice(0, lineLengthMax + 1)
    for (const line of lines) yield cut(line, lineLengthMax)
  }
  rest += decoder.end()
  if (rest !== '') yield cut(rest, lineLengthMax)
}

function cut(line: string, lengthMax: number): string {
  return line.slice(0, lengthMax).replace(/\r$/, '')
}
