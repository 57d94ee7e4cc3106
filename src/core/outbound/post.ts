import { type Dispatcher, errors } from 'undici'
import { ANSWER_KEPT_BYTES, type AttemptOutcome } from '../domain/delivery/delivery.ts'
import { parseRetryAfter } from '../domain/retry-after.ts'
import { type ConnectionUser, createReuseCheck } from './connection-use.ts'
import type { SendFailure } from './send-failure.ts'

/** An answer up to this length is read to its end, so that its connection can be used again. A longer answer ends the connection. */
const ANSWER_BYTES_MAX = 65_536
/** The most provisional (1xx) answers to one request. */
const PROVISIONAL_MAX = 100

export interface PostTarget {
  readonly origin: string
  /** The path with the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent byte for byte. */
  readonly body: Uint8Array
}

export interface PostHandlers {
  readonly now: () => number
  /** Says why the post may no longer be sent. Null: it may still be sent. Called when the post has a connection. */
  readonly refusal: () => SendFailure | null
  /** Opens a pool only to repeat this post. The post destroys the pool when it ends. */
  readonly openFresh: () => Dispatcher
  /** Turns the error that ended a request into the reason why there was no answer. */
  readonly failureOf: (error: unknown) => SendFailure
  /** Called once. `address`: see `AttemptResult`. */
  readonly onEnd: (outcome: AttemptOutcome, answerStart: Uint8Array, address: string | undefined) => void
}

/** Ends a post and its connection now. If a status was received, the status is the outcome. Otherwise `why` is the outcome. */
export type EndPost = (why: SendFailure) => void

export const EMPTY_BODY = new Uint8Array()
const TOO_LONG: SendFailure = { reason: 'bad_response', detail: 'TOO_LONG' }

/**
 * Makes one post through the dispatcher. It follows no redirect, decompresses nothing, and keeps only the first bytes of the answer. It does
 * not use undici's `request`, because the stream, the signal and the listeners that `request` makes cost more than the rest of a delivery.
 *
 * An endpoint may close an idle connection just when a post is written to it. If an earlier request had used the connection and no byte of
 * an answer came, the endpoint has most likely not seen the post. The post is then repeated once, without a pause, on a new connection.
 */
export function startPost(
  dispatcher: Dispatcher,
  { origin, path, headers, body }: PostTarget,
  { now, refusal, openFresh, failureOf, onEnd }: PostHandlers,
): EndPost {
  let controller: Dispatcher.DispatchController | null = null
  let outcome: AttemptOutcome | null = null
  let provisional = 0
  let kept: Uint8Array[] | null = null
  let size = 0
  let isOver = false
  let refusedBy: string | undefined
  const connection = createReuseCheck()
  let fresh: Dispatcher | null = null
  const request: Dispatcher.DispatchOptions = { origin, path, method: 'POST', headers, body }

  function end(why: SendFailure): void {
    if (isOver) return
    isOver = true
    controller?.abort(new errors.RequestAbortedError())
    void fresh?.destroy()
    onEnd(
      outcome ?? failedOutcome(why),
      outcome === null || kept === null ? EMPTY_BODY : Buffer.concat(kept),
      connection.address() ?? refusedBy,
    )
  }

  function keep(chunk: Uint8Array): void {
    if (size < ANSWER_KEPT_BYTES) {
      kept ??= []
      kept.push(chunk.subarray(0, ANSWER_KEPT_BYTES - size))
    }
    size += chunk.byteLength
  }

  const handler: ConnectionUser = {
    onClient: connection.belongsTo,
    onRequestStart(started) {
      controller = started
      connection.begin()
      // The post was ended before it had a connection.
      if (isOver) started.abort(new errors.RequestAbortedError())
      const why = refusal()
      if (why !== null) end(why)
    },
    onResponseStart(_controller, status, answered) {
      if (status >= 200) outcome = outcomeOf(status, answered['retry-after'], now())
      else provisional += 1
      // Nobody can mend a redirect without its target, so the target is kept as the first line of the answer.
      const target = status >= 300 && status <= 399 ? answered.location : undefined
      if (typeof target === 'string') keep(Buffer.from(`Location: ${target}\n`))
      if (provisional > PROVISIONAL_MAX) end({ reason: 'bad_response', detail: 'ONLY_PROVISIONAL' })
    },
    onResponseData(_controller, chunk) {
      keep(chunk)
      if (size > ANSWER_BYTES_MAX) end(TOO_LONG)
    },
    onResponseEnd() {
      controller = null
      end(TOO_LONG)
    },
    onResponseError(_controller, error) {
      controller = null
      refusedBy = addressIn(error)
      if (isOver || fresh !== null || !connection.mayRepeat(error)) {
        end(failureOf(error))
        return
      }
      fresh = openFresh()
      fresh.dispatch(request, handler)
    },
  }
  dispatcher.dispatch(request, handler)
  return end
}

/** The status alone decides the outcome, even if the body breaks off later. */
function outcomeOf(status: number, retryAfter: string | string[] | undefined, nowMs: number): AttemptOutcome {
  if (status >= 200 && status <= 299) return { kind: 'accepted', status }
  return { kind: 'rejected', status, retryAfterMs: parseRetryAfter(typeof retryAfter === 'string' ? retryAfter : null, nowMs) }
}

/** Returns the address in an error of the operating system, such as the address that refused the connection. */
function addressIn(error: unknown): string | undefined {
  return error instanceof Error && 'address' in error && typeof error.address === 'string' ? error.address : undefined
}

export function failedOutcome(failure: SendFailure): AttemptOutcome {
  return { kind: 'failed', ...failure }
}
