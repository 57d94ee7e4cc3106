import { AppError } from '../../domain/errors.ts'

export interface LineBounds {
  readonly bytesMax: number
  /** In characters; what is longer is given cut off, so that it is one bad line and not the end of the rest. */
  readonly lineLengthMax: number
}

/**
 * The lines of a body as they arrive: UTF-8, a byte order mark forgiven, ended by line feeds with or without carriage returns. Nothing is
 * read ahead of whoever takes the lines. Throws `body_too_large`.
 */
export async function* readLines(body: AsyncIterable<unknown>, { bytesMax, lineLengthMax }: LineBounds): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  let bytes = 0
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError('a body must be bytes')
    bytes += chunk.length
    if (bytes > bytesMax) throw new AppError('body_too_large', `A list may have at most ${bytesMax} bytes.`)
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = (lines.pop() ?? '').slice(0, lineLengthMax + 1)
    for (const line of lines) yield cut(line, lineLengthMax)
  }
  rest += decoder.decode()
  if (rest !== '') yield cut(rest, lineLengthMax)
}

function cut(line: string, lengthMax: number): string {
  return line.slice(0, lengthMax).replace(/\r$/, '')
}
