import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '../../domain/errors.ts'
import { EdgeError } from './problems.ts'

/** How much of a refused body is read and discarded, so that its sender can finish sending and then read the refusal. */
const DRAIN = { bytesMax: 64 * 1024 * 1024, timeMs: 2000 } as const
const DRAIN_UNSIGNED_BYTES_MAX = 64 * 1024
const RETRY_AFTER_MS = 1000

export type RawBodies = ReturnType<typeof createRawBodies>

export interface RawBodyOptions {
  /** `webhook.bodyBytesMax` */
  readonly bodyBytesMax: number
  /** `limits.bodyBytesInFlight` */
  readonly bytesInFlightMax: number
  /** `limits.connections` */
  readonly connectionsMax: number
}

/**
 * Reads bodies within a budget of memory that all requests share, because a body must be in memory before its signature can be verified. Half
 * of the budget is divided equally among all possible connections, so that large bodies cannot keep out small ones. The rest is first come,
 * first served.
 */
export function createRawBodies({ bodyBytesMax, bytesInFlightMax, connectionsMax }: RawBodyOptions) {
  const shareBytes = Math.floor(bytesInFlightMax / 2 / connectionsMax)
  let poolBytes = Math.floor(bytesInFlightMax / 2)

  /** Reads a body. Calls `take` before it keeps a chunk. If `take` returns an error, rejects with it. */
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
        // `close` also follows a whole body. Then create no error, because that costs more than reading a body.
        if (req.readableEnded) return
        body.forget()
        reject(new Error('the client disconnected in the middle of its body'))
      })
    })

  return {
    /**
     * Reads the body and passes its exact bytes to `use`. The bytes count against the budget until `use` settles. Throws `body_too_large` and
     * `overloaded`. Rejects with a plain Error if the client disconnects.
     */
    async use<Result>(req: IncomingMessage, res: ServerResponse, use: (body: Buffer) => Promise<Result>): Promise<Result> {
      // The bytes that this request uses of the shared half of the budget, beyond its own share.
      let held = 0
      const take = (received: number, kept: number): Error | null => {
        if (received > bodyBytesMax) return tooLarge(bodyBytesMax)
        const wanted = Math.max(0, kept - shareBytes) - held
        if (wanted > poolBytes) return overloaded()
        held += wanted
        poolBytes -= wanted
        return null
      }
      // A client that sent `Expect: 100-continue` waits for the 100 before it sends the body. A refused client sends no body.
      let sending = !awaitsContinue(req)
      let body: Buffer | null = null
      try {
        if ((declaredBytes(req) ?? 0) > bodyBytesMax) throw tooLarge(bodyBytesMax)
        if (!sending) res.writeContinue()
        sending = true
        body = await read(req, take)
        return await use(body)
      } catch (error) {
        // Free the body only if its signature was wrong: then nobody uses it. After other failures the store may still be writing it.
        if (body !== null && isCode(error, 'signature_invalid')) giveBack(body)
        if (!sending || isCode(error, 'body_too_large')) res.setHeader('Connection', 'close')
        if (sending && !(await drained(req, DRAIN.bytesMax))) closeAfterAnswer(req, res)
        throw error
      } finally {
        poolBytes += held
      }
    },
    /**
     * Reads at most 64 KiB of the body of a request that is refused anyway. Resolves with the body if `keeps` is true and the body is
     * complete, otherwise with null.
     */
    async refuse(req: IncomingMessage, res: ServerResponse, keeps: boolean): Promise<Buffer | null> {
      const small = !awaitsContinue(req) && (declaredBytes(req) ?? 0) <= DRAIN_UNSIGNED_BYTES_MAX
      const parts: Buffer[] = []
      if (small && (await drained(req, DRAIN_UNSIGNED_BYTES_MAX, keeps ? parts : null))) return keeps ? Buffer.concat(parts) : null
      closeAfterAnswer(req, res)
      return null
    },
  }
}

/** Reads up to `bytesMax` bytes for a limited time. Discards them, or adds copies to `copies`. Returns whether the whole body has come. */
async function drained(req: IncomingMessage, bytesMax: number, copies: Buffer[] | null = null): Promise<boolean> {
  // A small body often arrives together with the headers. Such a body can be discarded without reading it.
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

/** Closes the connection after the answer. Until then discards what arrives of the body, and stops reading after 64 KiB. */
function closeAfterAnswer(req: IncomingMessage, res: ServerResponse): void {
  let left = DRAIN_UNSIGNED_BYTES_MAX
  req.on('data', (chunk: Buffer) => {
    left -= chunk.length
    giveBackSoon(chunk)
    if (left <= 0) req.pause()
  })
  res.setHeader('Connection', 'close')
}

/** Null: the body is chunked, so its size is unknown. */
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

/** Smaller buffers are left to the garbage collector, because freeing them costs more than it saves. */
const GIVEN_BACK_BYTES_MIN = 16 * 1024
const NOTHING = Buffer.alloc(0)

/**
 * Creates a body that keeps no byte twice. Nearly every body comes in one chunk, which is kept without a copy. If more chunks follow, they
 * are copied into a growing buffer and freed.
 */
export function createBody(bytesMax: number) {
  let kept: Buffer = NOTHING
  let length = 0
  /** Returns how many bytes of memory the body would take with `more` bytes added. It may reserve room for further chunks. */
  const heldWith = (more: number): number => {
    if (length === 0) return more
    return length + more <= kept.length ? kept.length : Math.max(length + more, Math.min(bytesMax, 2 * kept.length))
  }
  return {
    heldWith,
    add(chunk: Buffer) {
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
    /** Do not call `add` afterwards. */
    bytes: (): Buffer => (length === kept.length ? kept : kept.subarray(0, length)),
    forget() {
      giveBackSoon(kept)
      kept = NOTHING
      length = 0
    },
  }
}

/**
 * Frees the memory of a buffer at once. The garbage collector sees only a small object for each buffer, so it runs too rarely: during a flood
 * of bodies, hundreds of megabytes would pile up.
 */
export function giveBack(bytes: Buffer): void {
  const { buffer } = bytes
  // A slice shares its memory with other buffers.
  if (bytes.length < GIVEN_BACK_BYTES_MIN || bytes.length < buffer.byteLength) return
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0)
}

/** Frees the memory in a microtask, after the handlers of the current event, because these may still read the bytes. */
function giveBackSoon(bytes: Buffer): void {
  if (bytes.length >= GIVEN_BACK_BYTES_MIN) queueMicrotask(() => giveBack(bytes))
}
