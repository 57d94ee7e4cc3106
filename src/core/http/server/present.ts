import type { Context } from 'koa'

export type WithParams = Context & { params: Record<string, string> }

/** Control characters except tabs, line feeds and carriage returns. */
const NO_TEXT = /(?![\t\n\r])\p{Cc}/u

/** Sends an answer of the relay's own API, which nobody may cache. */
export function presentJson<Body extends object>(ctx: Context, status: number, body: Body): void {
  ctx.status = status
  ctx.body = JSON.stringify(body)
  ctx.set('Content-Type', 'application/json')
  ctx.set('Cache-Control', 'no-store')
}

/** Returns the members for the start of a receiver's answer. If it is not text, `answerStart` is null and `answerStartBase64` has the bytes. */
export function presentAnswerStart(bytes: Uint8Array): { readonly answerStart: string | null; readonly answerStartBase64?: string } {
  const text = readText(bytes)
  return text === null ? { answerStart: null, answerStartBase64: Buffer.from(bytes).toString('base64') } : { answerStart: text }
}

/** Decodes UTF-8. A character that is cut off at the end is left out. Null: the bytes are not UTF-8, or have control characters. */
function readText(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return NO_TEXT.test(text) ? null : text
  } catch {
    return null
  }
}

export function presentInstant(atMs: number): string
export function presentInstant(atMs: number | null): string | null
export function presentInstant(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString()
}
