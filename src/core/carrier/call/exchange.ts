import pRetry from 'p-retry'
import { type Dispatcher, errors, request as sendRequest } from 'undici'
import type { CallSpender } from '../../domain/admin/tally.ts'
import { systemCode } from '../../domain/errors.ts'
import type { CallPriority, UnavailableReason } from '../../domain/polling/carrier-answer.ts'
import type { Relay } from '../../flow/relay-part.ts'
import type { Deadline } from '../../outbound/deadline.ts'
import { LENGTH_UNCLEAR } from '../../outbound/send-failure.ts'
import type { CallQueue } from './call-queue.ts'
import type { AskingClock, CarrierTime } from './carrier-time.ts'

/** The body of a refusal of at most this size is read to its end, so that its connection can be used again. */
const REFUSAL_BYTES_MAX = 65_536

/** Connection errors that usually come at once, before any answer. A quick retry may help, and repeating the request does no harm. */
const QUICK_CODES: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

const NO_HTTP = 'NO_HTTP'

export interface CarrierRequest {
  readonly method: 'GET' | 'POST'
  readonly url: string
  /** Called when the request is sent, because a header, such as the token, may change while the request waits in the queue. */
  readonly headers: () => Readonly<Record<string, string>>
  readonly body?: string
  readonly bodyBytesMax: number
  readonly priority: CallPriority
  readonly spender: CallSpender
  readonly giveUpAtMs: number | null
  /** Starts when the request is sent, unless it is running already. */
  readonly deadline: Deadline
}

/** Any HTTP answer. The body is empty if the status is no success and the body breaks off, is long or encoded. */
export interface Answered {
  readonly kind: 'answered'
  readonly status: number
  readonly header: (name: string) => string | null
  readonly body: Uint8Array
  /** When the request was sent, epoch milliseconds. */
  readonly askedAtMs: number
  /** From sending the request to the end of the answer, milliseconds. */
  readonly tookMs: number
}

export interface Failed {
  readonly kind: 'failed'
  readonly reason: UnavailableReason
  readonly retryAfterMs?: number
  /** A code for the log. It contains nothing that the carrier sent. */
  readonly detail: string
  /** Whether the failure may count against the carrier. False: the request was never sent, or was cut off before `fairShareMs`. */
  readonly conclusive: boolean
  /** Whether the failure came at once, so that a quick retry may help. */
  readonly quick: boolean
}

/** Makes one request, which is one call of the budget. Failures of the carrier or the network are returned as values, never thrown. */
export type Exchange = (request: CarrierRequest) => Promise<Answered | Failed>

interface ExchangePorts extends Pick<Relay, 'clock'> {
  /** Returns the connections to the carrier. Called at each request, because they may be replaced. */
  readonly agent: () => Dispatcher
  readonly queue: CallQueue
  /** A request that is cut off counts against the carrier only if it ran this long. */
  readonly fairShareMs: number
  readonly asking: Pick<AskingClock, 'stamp'>
  readonly onCall?: ((spender: CallSpender) => void) | undefined
  readonly time: Pick<CarrierTime, 'answered'>
}

export function createExchange(ports: ExchangePorts): Exchange {
  const { queue, clock, fairShareMs, asking } = ports
  return async (request) => {
    const { deadline, priority, giveUpAtMs } = request
    const slot = await queue.take({ priority, giveUpAtMs, signal: deadline.signal })
    if (slot.kind === 'refused') {
      return {
        kind: 'failed',
        reason: slot.reason,
        retryAfterMs: slot.retryAfterMs,
        detail: 'did_not_leave',
        conclusive: false,
        quick: false,
      }
    }
    deadline.start()
    ports.onCall?.(request.spender)
    const leftAtMs = clock.monotonic()
    const sentAtMs = clock.now()
    const isFair = () => clock.monotonic() - leftAtMs >= fairShareMs
    try {
      const tookMs = () => clock.monotonic() - leftAtMs
      return await ask(request, ports.agent(), asking.stamp(), { isFair, tookMs, onDate: (date) => ports.time.answered(date, sentAtMs) })
    } finally {
      slot.release()
    }
  }
}

interface AskOptions {
  readonly isFair: () => boolean
  readonly tookMs: () => number
  /** Receives the `Date` of the answer; null: it has none. */
  readonly onDate: (date: string | null) => void
}

async function ask(
  request: CarrierRequest,
  agent: Dispatcher,
  askedAtMs: number,
  { isFair, tookMs, onDate }: AskOptions,
): Promise<Answered | Failed> {
  const { method, url, headers, body, deadline, bodyBytesMax } = request
  const { signal } = deadline
  const failed = (reason: UnavailableReason, detail: string, quick = false): Failed => ({
    kind: 'failed',
    reason,
    detail,
    conclusive: reason !== 'timeout' || isFair(),
    quick,
  })
  let response: Dispatcher.ResponseData
  try {
    response = await sendRequest(url, { method, headers: headers(), body: body ?? null, dispatcher: agent, signal })
  } catch (error) {
    const code = codeOf(error)
    if (signal.aborted || code === 'UND_ERR_CONNECT_TIMEOUT') return failed('timeout', code)
    // The answer is not HTTP, or its head is too long or names two lengths.
    if (code === NO_HTTP || code === LENGTH_UNCLEAR || code === 'UND_ERR_HEADERS_OVERFLOW') return failed('bad_response', code)
    return failed('network', code, QUICK_CODES.has(code))
  }
  onDate(headerOf(response, 'date'))
  const answered = (bytes: Uint8Array): Answered => ({
    kind: 'answered',
    status: response.statusCode,
    header: (name) => headerOf(response, name),
    body: bytes,
    askedAtMs,
    tookMs: tookMs(),
  })
  if (response.statusCode < 200 || response.statusCode > 299) {
    // The status counts here, so ignore a failure to read the body.
    const bytes = await readBoundedBody(response.body, REFUSAL_BYTES_MAX).catch(() => null)
    return answered(bytes === null || isEncoded(response) ? new Uint8Array() : bytes)
  }
  try {
    const bytes = await readBoundedBody(response.body, bodyBytesMax)
    if (bytes === null) return failed('bad_response', 'too_large')
    return isEncoded(response) ? failed('bad_response', 'content_encoding') : answered(bytes)
  } catch (error) {
    return signal.aborted ? failed('timeout', codeOf(error)) : failed('bad_response', 'cut_short')
  }
}

/** The relay never decompresses an answer, because a small one could grow without limit. */
function isEncoded(response: Dispatcher.ResponseData): boolean {
  return (headerOf(response, 'content-encoding') ?? 'identity').toLowerCase() !== 'identity'
}

/** Joins repeated headers with commas, as HTTP allows. If a header like `Retry-After` is repeated, its joined value is invalid and is ignored. */
function headerOf(response: Dispatcher.ResponseData, name: string): string | null {
  const value = response.headers[name]
  return typeof value === 'string' ? value : (value?.join(', ') ?? null)
}

function codeOf(error: unknown): string {
  return error instanceof errors.HTTPParserError ? NO_HTTP : (systemCode(error) ?? 'UNKNOWN')
}

/** Reads a body of at most `bytesMax` bytes. Null: the body is longer, and its rest was not read. Throws if the body breaks off. */
async function readBoundedBody(body: AsyncIterable<unknown>, bytesMax: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  // A return from the loop destroys the stream and its connection, so an endless body does no harm.
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError('a body chunk is not bytes')
    size += chunk.byteLength
    if (size > bytesMax) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}

const RETRIES = 2
const FIRST_PAUSE_MS = 100
const PASSING: ReadonlySet<number> = new Set([502, 503, 504])

/**
 * Repeats a request up to twice, after a short random pause, if its failure looks temporary: the connection was refused or reset, or a gateway had no
 * backend. A request whose answer has a `Retry-After` is not repeated here.
 */
export async function withQuickRetries(ask: () => Promise<Answered | Failed>, signal: AbortSignal): Promise<Answered | Failed> {
  const passing = new Error('temporary failure')
  let last: Answered | Failed | null = null
  const attempt = async (): Promise<Answered | Failed> => {
    const result = await ask()
    // A repeat that was not sent, or was cut off early, tells nothing about the carrier. So keep the result of the request before it.
    if (last === null || result.kind === 'answered' || result.conclusive) last = result
    if (isPassing(last)) throw passing
    return last
  }
  try {
    return await pRetry(attempt, { retries: RETRIES, minTimeout: FIRST_PAUSE_MS, randomize: true, signal })
  } catch (error) {
    if (error !== passing && !signal.aborted) throw error
    return last ?? { kind: 'failed', reason: 'timeout', detail: 'did_not_leave', conclusive: false, quick: false }
  }
}

/** Returns a function that names the spender of each call that one request makes: `sender` for the first call, and `repeat` for its repeats. */
export function spentBy(sender: CallSpender): () => CallSpender {
  let isFirst = true
  return () => {
    const spender = isFirst ? sender : 'repeat'
    isFirst = false
    return spender
  }
}

function isPassing(result: Answered | Failed): boolean {
  if (result.kind === 'failed') return result.quick
  return PASSING.has(result.status) && result.header('retry-after') === null
}
