import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '../../domain/errors.ts'
import { EdgeError } from './errors.ts'

/** How much of a refused body is read and thrown away, so that its sender gets to see the refusal instead of a broken pipe. */
const DRAIN = { bytesMax: 64 * 1024 * 1024, timeMs: 2000 } as const
const DRAIN_UNSIGNED_BYTES_MAX = 64 * 1024
const RETRY_AFTER_MS = 1000

export interface RawBodies {
  /**
   * Gives the exact bytes received to `use`, and counts them until it has settled. Throws `body_too_large` and `overloaded`; a request whose
   * client left rejects with whatever the stream said.
   */
  use<Result>(req: IncomingMessage, res: ServerResponse, use: (body: Buffer) => Promise<Result>): Promise<Result>
  /** For a request that is refused whatever its body: reads no more than 64 KB of it. */
  refuse(req: IncomingMessage, res: ServerResponse): Promise<void>
}

export interface RawBodyOptions {
  /** `webhook.bodyBytesMax` */
  readonly bodyBytesMax: number
  /** `limits.bodyBytesInFlight` */
  readonly bytesInFlightMax: number
  /** `limits.connections` */
  readonly connectionsMax: number
}

/**
 * Reads bodies within a budget over all requests, as they must be held before they can be verified. Half of the budget is dealt out evenly,
 * so that somebody's large bodies cannot keep everybody's small ones out; the other half is for who comes first.
 */
export function createRawBodies({ bodyBytesMax, bytesInFlightMax, connectionsMax }: RawBodyOptions): RawBodies {
  const shareBytes = Math.floor(bytesInFlightMax / 2 / connectionsMax)
  let poolBytes = Math.floor(bytesInFlightMax / 2)

  /** `take` is asked before anything is kept, and says why so many bytes cannot be received or held, if they cannot. */
  const read = (req: IncomingMessage, take: (received: number, kept: number) => Error | null): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const body = createBody(Math.min(declaredBytes(req) ?? bodyBytesMax, bodyBytesMax))
      let received = 0
      const keep = (chunk: Buffer) => {
        received += chunk.length
        const refused = take(received, body.heldWith(chunk.length))
        if (refused === null) {
          body.add(chunk)
          return
        }
        req.off('data', keep)
        body.forget()
        giveBackSoon(chunk)
        reject(refused)
      }
      req.on('data', keep)
      req.on('end', () => resolve(body.bytes()))
      req.on('close', () => {
        // Every request closes in the end, and an error costs more than reading a body.
        if (req.readableEnded) return
        body.forget()
        reject(new Error('the client left in the middle of its body'))
      })
    })

  return {
    async use(req, res, use) {
      // What this request holds of the pool, beyond its own share.
      let held = 0
      const take = (received: number, kept: number): Error | null => {
        if (received > bodyBytesMax) return tooLarge(bodyBytesMax)
        const wanted = Math.max(0, kept - shareBytes) - held
        if (wanted > poolBytes) return overloaded()
        held += wanted
        poolBytes -= wanted
        return null
      }
      // A client that asked before it sends has sent nothing yet, and will not if it is refused now.
      let sending = !awaitsContinue(req)
      let body: Buffer | null = null
      try {
        if ((declaredBytes(req) ?? 0) > bodyBytesMax) throw tooLarge(bodyBytesMax)
        if (!sending) res.writeContinue()
        sending = true
        body = await read(req, take)
        return await use(body)
      } catch (error) {
        // Nobody else has it: what is refused for another reason may still be on its way to the store.
        if (body !== null && isCode(error, 'signature_invalid')) giveBack(body)
        if (!sending || isCode(error, 'body_too_large')) res.setHeader('Connection', 'close')
        if (sending && !(await drained(req, DRAIN.bytesMax))) closeAfterAnswer(req, res)
        throw error
      } finally {
        poolBytes += held
      }
    },
    async refuse(req, res) {
      const small = !awaitsContinue(req) && (declaredBytes(req) ?? 0) <= DRAIN_UNSIGNED_BYTES_MAX
      if (!small || !(await drained(req, DRAIN_UNSIGNED_BYTES_MAX))) closeAfterAnswer(req, res)
    },
  }
}

/** Reads on and forgets, until the end, the most bytes or the time; whether the request has ended by then. */
async function drained(req: IncomingMessage, bytesMax: number): Promise<boolean> {
  if (req.complete || req.destroyed) return req.complete
  const { promise, resolve } = Promise.withResolvers<void>()
  let left = bytesMax
  const timer = setTimeout(resolve, DRAIN.timeMs)
  const count = (chunk: Buffer) => {
    left -= chunk.length
    giveBackSoon(chunk)
    if (left <= 0) resolve()
  }
  req.on('data', count).once('end', resolve).once('close', resolve).resume()
  await promise
  clearTimeout(timer)
  req.off('data', count).off('end', resolve).off('close', resolve)
  return req.complete
}

/** What still comes of the body, at most two reads of it, is given back: kept by the request it would wait for the collector. */
function closeAfterAnswer(req: IncomingMessage, res: ServerResponse): void {
  let left = DRAIN_UNSIGNED_BYTES_MAX
  req.on('data', (chunk: Buffer) => {
    left -= chunk.length
    giveBackSoon(chunk)
    if (left <= 0) req.pause()
  })
  res.setHeader('Connection', 'close')
}

/** Null: it is sent in chunks, and does not say. */
function declaredBytes({ headers }: IncomingMessage): number | null {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : null
}

function awaitsContinue(req: IncomingMessage): boolean {
  return req.headers.expect?.toLowerCase() === '100-continue'
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof AppError && error.code === code
}

function tooLarge(bytesMax: number): AppError {
  return new AppError('body_too_large', `A body may have at most ${bytesMax} bytes.`)
}

function overloaded(): EdgeError {
  return new EdgeError('overloaded', 'Too much is being received at once. Send it again later.', { retryAfterMs: RETRY_AFTER_MS })
}

/** A body as it comes in. */
export interface Body {
  /** How many bytes it would hold with so many more: where it grows it makes room for what may follow. */
  heldWith(more: number): number
  add(chunk: Buffer): void
  /** All of it. It is not to be added to afterwards. */
  bytes(): Buffer
  /** Nobody will ask for it. */
  forget(): void
}

/** Smaller pieces are left to the collector: it has them soon, and giving them back costs more than it brings. */
const GIVEN_BACK_BYTES_MIN = 16 * 1024
const NOTHING = Buffer.alloc(0)

/**
 * Collects a body of at most so many bytes, and holds no byte of it twice: nearly every one comes in one piece, which is the body; pieces of a
 * larger one are copied to where it grows, and given back.
 */
export function createBody(bytesMax: number): Body {
  let kept: Buffer = NOTHING
  let length = 0
  const heldWith = (more: number): number => {
    if (length === 0) return more
    return length + more <= kept.length ? kept.length : Math.max(length + more, Math.min(bytesMax, 2 * kept.length))
  }
  return {
    heldWith,
    add(chunk) {
      if (length === 0) {
        kept = chunk
        length = chunk.length
        return
      }
      if (length + chunk.length > kept.length) {
        const larger = Buffer.allocUnsafeSlow(heldWith(chunk.length))
        larger.set(length < kept.length ? kept.subarray(0, length) : kept)
        giveBackSoon(kept)
        kept = larger
      }
      kept.set(chunk, length)
      length += chunk.length
      giveBackSoon(chunk)
    },
    bytes: () => (length === kept.length ? kept : kept.subarray(0, length)),
    forget() {
      giveBackSoon(kept)
      kept = NOTHING
      length = 0
    },
  }
}

/**
 * Gives memory back at once that nothing looks at any more. The collector goes by the objects it sees, and those of a flood of bodies are few
 * and small: without this, hundreds of megabytes would wait for it.
 */
export function giveBack(bytes: Buffer): void {
  const { buffer } = bytes
  // Of a part others may have the rest.
  if (bytes.length < GIVEN_BACK_BYTES_MIN || bytes.length < buffer.byteLength) return
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0)
}

/** The same once the platform is through with telling of it: it may still be in the middle of these very bytes. */
function giveBackSoon(bytes: Buffer): void {
  if (bytes.length >= GIVEN_BACK_BYTES_MIN) queueMicrotask(() => giveBack(bytes))
}
