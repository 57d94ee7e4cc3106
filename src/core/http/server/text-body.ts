import type { Context } from 'koa'
import { koaBody } from 'koa-body'
import { createListDecoder } from '../../domain/admin/parcel-list.ts'
import { AppError } from '../../domain/errors.ts'

/** Makes the middleware that reads a JSON body of at most `bytesMax` bytes. Throws `bad_request` and `body_too_large`. */
export function readJson(bytesMax: number) {
  return koaBody({
    urlencoded: false,
    text: false,
    jsonLimit: bytesMax,
    patchNode: false,
    onError: (error, ctx) => {
      ctx.set('Connection', 'close')
      if ('status' in error && error.status === 413) throw new AppError('body_too_large', `A body may have at most ${bytesMax} bytes.`)
      throw new AppError('bad_request', describe(error.message))
    },
  })
}

/** Throws `bad_request` if the body is not of a JSON type. koa-body would treat such a body as empty. */
export function refuseOtherTypes(ctx: Context): void {
  const isEmpty = ctx.get('Content-Length') === '0'
  if (isEmpty || ctx.is('json') !== false) return
  ctx.set('Connection', 'close')
  throw new AppError('bad_request', 'The body must be JSON, with Content-Type: application/json.')
}

/** Returns a message for the client. The parser's own message quotes the body, which may contain a key. */
function describe(message: string): string {
  if (message.includes('only supports object')) return 'The body must be a JSON object.'
  if (message.includes('forbidden prototype')) return 'The body must not have a member "__proto__".'
  const [, line, column] = /line (\d+) column (\d+)/.exec(message) ?? []
  return line === undefined ? 'The body is not valid JSON.' : `The body is not valid JSON: look at line ${line}, column ${column}.`
}

interface LineBounds {
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
