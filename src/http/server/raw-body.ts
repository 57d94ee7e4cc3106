import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '../../domain/errors.ts'
import { EdgeError } from './errors.ts'

/** How much of a refused body is read and discarded. So its sender sees the refusal and not a broken pipe. */
const DRAIN = { bytesMax: 64 * 1024 * 1024, timeMs: 2000 } as const
const DRAIN_UNSIGNED_BYTES_MAX = 64 * 1024
const RETRY_AFTER_MS = 1000

export interface RawBodies {
  /**
   * Passes the exact bytes to `use`, and counts them against the budget until it settles. Throws `body_too_large` and `overloaded`. Rejects
   * with a plain Error if the client disconnects.
   */
  use<Result>(req: IncomingMessage, res: ServerResponse, use: (body: Buffer) => Promise<Result>): Promise<Result>
  /**
   * Reads at most 64 KB of the body of a request that is refused anyway. Resolves with the body if it is complete and is to be kept,
   * otherwise with null.
   */
  refuse(req: IncomingMessage, res: ServerResponse, keeps: boolean): Promise<Buffer | null>
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
 * Reads bodies within a budget for all requests, because a body must be in memory before it can be verified. Half of the budget is an equal
 * share for each connection, so that large bodies cannot keep out small ones. The other half is first come, first served.
 */
export function createRawBodies({ bodyBytesMax, bytesInFlightMax, connectionsMax }: RawBodyOptions): RawBodies {
  const shareBytes = Math.floor(bytesInFlightMax / 2 / connectionsMax)
  let poolBytes = Math.floor(bytesInFlightMax / 2)

  /** Calls `take` before it keeps a chunk. `take` returns an error if the bytes cannot be received or kept. */
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
        // Check this first, because every request closes, and making an error costs more than reading a body.
        if (req.readableEnded) return
        body.forget()
        reject(new Error('the client disconnected in the middle of its body'))
      })
    })

  return {
    async use(req, res, use) {
      // Bytes of this request in the shared half of the budget, in addition to its own share.
      let held = 0
      const take = (received: number, kept: number): Error | null => {
        if (received > bodyBytesMax) return tooLarge(bodyBytesMax)
        const wanted = Math.max(0, kept - shareBytes) - held
        if (wanted > poolBytes) return overloaded()
        held += wanted
        poolBytes -= wanted
        return null
      }
      // A client that sent `Expect: 100-continue` has sent no body yet, and will send none if it is refused now.
      let sending = !awaitsContinue(req)
      let body: Buffer | null = null
      try {
        if ((declaredBytes(req) ?? 0) > bodyBytesMax) throw tooLarge(bodyBytesMax)
        if (!sending) res.writeContinue()
        sending = true
        body = await read(req, take)
        return await use(body)
      } catch (error) {
        // Nobody uses a body whose signature does not match. After another failure the store may still be writing it.
        if (body !== null && isCode(error, 'signature_invalid')) giveBack(body)
        if (!sending || isCode(error, 'body_too_large')) res.setHeader('Connection', 'close')
        if (sending && !(await drained(req, DRAIN.bytesMax))) closeAfterAnswer(req, res)
        throw error
      } finally {
        poolBytes += held
      }
    },
    async refuse(req, res, keeps) {
      const small = !awaitsContinue(req) && (declaredBytes(req) ?? 0) <= DRAIN_UNSIGNED_BYTES_MAX
      const parts: Buffer[] = []
      if (small && (await drained(req, DRAIN_UNSIGNED_BYTES_MAX, keeps ? parts : null))) return keeps ? Buffer.concat(parts) : null
      closeAfterAnswer(req, res)
      return null
    },
  }
}

/** Reads up to `bytesMax` bytes for a limited time, and discards them or keeps copies. True: the request has ended. */
async function drained(req: IncomingMessage, bytesMax: number, copies: Buffer[] | null = null): Promise<boolean> {
  // A small body has often come with the head. Then nothing need be read to discard it.
  if (req.destroyed || (copies === null ? req.complete : req.readableEnded)) return req.complete
  const { promise, resolve } = Promise.withResolvers<void>()
  let left = bytesMax
  const timer = setTimeout(resolve, DRAIN.timeMs)
  const count = (chunk: Buffer) => {
    left -= chunk.length
    copies?.push(Buffer.from(chunk))
    giveBackSoon(chunk)
    if (left <= 0) resolve()
  }
  req.on('data', count).once('end', resolve).once('close', resolve).resume()
  await promise
  clearTimeout(timer)
  req.off('data', count).off('end', resolve).off('close', resolve)
  return req.complete
}

/** Closes the connection after the answer. Until then it discards the rest of the body, at most two reads, and frees their memory at once. */
function closeAfterAnswer(req: IncomingMessage, res: ServerResponse): void {
  let left = DRAIN_UNSIGNED_BYTES_MAX
  req.on('data', (chunk: Buffer) => {
    left -= chunk.length
    giveBackSoon(chunk)
    if (left <= 0) req.pause()
  })
  res.setHeader('Connection', 'close')
}

/** The size of a body; null: the body is chunked, so its size is unknown. */
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
  return new EdgeError('overloaded', 'Too many bytes are being received at once. Try again later.', { retryAfterMs: RETRY_AFTER_MS })
}

/** Collects a body as it arrives. */
export interface Body {
  /** How much memory the body would take after `more` bytes. A growing body reserves room for what may follow. */
  heldWith(more: number): number
  add(chunk: Buffer): void
  /** The whole body. Nothing may be added afterwards. */
  bytes(): Buffer
  /** Frees the memory of a body that is no longer needed. */
  forget(): void
}

/** Smaller pieces are left to the garbage collector, because freeing them costs more than it saves. */
const GIVEN_BACK_BYTES_MIN = 16 * 1024
const NOTHING = Buffer.alloc(0)

/**
 * Keeps no byte twice. Nearly every body comes in one piece, which is kept as it is. The pieces of a larger one are copied into a growing
 * buffer and freed.
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
 * Frees the memory of a buffer at once. In a flood of bodies the garbage collector sees only small objects, and would let hundreds of
 * megabytes wait.
 */
export function giveBack(bytes: Buffer): void {
  const { buffer } = bytes
  // A slice shares its memory with other buffers.
  if (bytes.length < GIVEN_BACK_BYTES_MIN || bytes.length < buffer.byteLength) return
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0)
}

/** Frees the memory after the present event, because Node may still be reading these bytes. */
function giveBackSoon(bytes: Buffer): void {
  if (bytes.length >= GIVEN_BACK_BYTES_MIN) queueMicrotask(() => giveBack(bytes))
}
