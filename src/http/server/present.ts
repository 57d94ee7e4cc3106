import type { Context } from 'koa'

export type WithParams = Context & { params: Record<string, string> }

/** Control characters but for tabs, line feeds and carriage returns. */
const NO_TEXT = /(?![\t\n\r])\p{Cc}/u

/** What was made, and where it is. */
export function presentCreated(ctx: Context, location: string, body: object): void {
  presentJson(ctx, 201, body)
  ctx.set('Location', location)
}

/** An answer of the relay's own API: never kept by anybody on the way. */
export function presentJson(ctx: Context, status: number, body: object): void {
  ctx.status = status
  ctx.body = JSON.stringify(body)
  ctx.set('Content-Type', 'application/json')
  ctx.set('Cache-Control', 'no-store')
}

/**
 * The beginning of what a receiver answered. Anybody's bytes: as text where they are text, else `answerStart` is null and Base64 carries
 * them as they are.
 */
export function presentAnswerStart(bytes: Uint8Array): object {
  const text = readText(bytes)
  return text === null ? { answerStart: null, answerStartBase64: Buffer.from(bytes).toString('base64') } : { answerStart: text }
}

/** Null: it is no UTF-8, or holds what no text does. A character that was cut off at the end is left out. */
function readText(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return NO_TEXT.test(text) ? null : text
  } catch {
    return null
  }
}

export function presentInstant(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString()
}
