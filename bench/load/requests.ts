import { createHmac, createSecretKey } from 'node:crypto'
import { eventAt, eventBody, trackingId } from './event.ts'
import { locationOf } from './stamps.ts'

/** What to prepare before the clock runs. */
export type RequestPlan =
  /** Signed events of parcels from `firstParcel` on, each sent once unless they `repeat`. */
  | {
      readonly kind: 'pushes'
      readonly firstParcel: number
      readonly events: number
      readonly sharedKey: string
      readonly repeat: boolean
      readonly isFresh?: boolean
    }
  /** An endless series of events, one per parcel, stamped with their due time and signed when sent. */
  | { readonly kind: 'stamped'; readonly firstParcel: number; readonly sharedKey: string }
  /** Reads of `all` with a bearer token for parcels 0 to `parcels`: each once in order, or at random without end. */
  | { readonly kind: 'asks'; readonly parcels: number; readonly token: string; readonly order: 'once' | 'random' }

/** Requests as bytes to send. */
export interface Requests {
  /** Null: all were sent. `dueMs`: when the request is due, on the clock of `performance.now()`. */
  next(dueMs: number): Buffer | null
}

export const WEBHOOK_PATH = '/webhooks/status'

export function prepareRequests(plan: RequestPlan): Requests {
  if (plan.kind === 'asks') {
    const asks = joined(plan.parcels, (parcel) => askRequest(trackingId(parcel), plan.token))
    return plan.order === 'once' ? inTurn(asks, false) : atRandom(asks)
  }
  const key = createSecretKey(Buffer.from(plan.sharedKey))
  const nowMs = Date.now()
  const sign = (body: Buffer) => pushRequest(body, createHmac('sha256', key).update(body).digest('base64'))
  if (plan.kind === 'stamped') {
    let parcel = plan.firstParcel
    return { next: (dueMs) => sign(eventBody(parcel++, 0, nowMs, { location: locationOf(dueMs) })) }
  }
  const pushes = joined(plan.events, (at) => {
    const { parcel, nth } = eventAt(at, plan.firstParcel)
    return sign(eventBody(parcel, nth, nowMs, { isFresh: plan.isFresh ?? false }))
  })
  return inTurn(pushes, plan.repeat)
}

function pushRequest(body: Buffer, signature: string): Buffer {
  const head = [
    `POST ${WEBHOOK_PATH} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    `x-service-hmac-sha256: ${signature}`,
    `Content-Length: ${body.length}`,
  ]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body])
}

function askRequest(identifier: string, token: string): Buffer {
  const head = [`GET /v1/status/${identifier}/all?language=en HTTP/1.1`, 'Host: 127.0.0.1', `Authorization: Bearer ${token}`]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n`)
}

interface Joined {
  readonly count: number
  at(index: number): Buffer
}

/** Puts all requests into one buffer: hundreds of thousands of small ones would keep the garbage collector busy during the measurement. */
function joined(count: number, make: (at: number) => Buffer): Joined {
  const ends = new Float64Array(count)
  let bytes = Buffer.allocUnsafe(1024 * 1024)
  let end = 0
  for (let at = 0; at < count; at++) {
    const request = make(at)
    if (end + request.length > bytes.length) bytes = Buffer.concat([bytes], bytes.length * 2)
    request.copy(bytes, end)
    end += request.length
    ends[at] = end
  }
  return { count, at: (index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], ends[index]) }
}

function inTurn(requests: Joined, repeat: boolean): Requests {
  let sent = 0
  return {
    next() {
      if (sent === requests.count && repeat) sent = 0
      return sent === requests.count ? null : requests.at(sent++)
    },
  }
}

/** Draws with replacement. In a shuffled round an LRU cache would never hit, because each repetition comes too late. */
function atRandom(requests: Joined): Requests {
  return { next: () => requests.at(Math.floor(Math.random() * requests.count)) }
}
