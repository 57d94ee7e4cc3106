import type { ClaimedDelivery, DispatchRound, DispatchRoundReport, SettledAttempt } from '../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'

/** A dispatch round in transit between threads: a few columns of numbers and one block of bytes instead of thousands of small objects a second. */
export interface EncodedRound extends Omit<DispatchRound, 'settled'> {
  readonly endpointIds: readonly string[]
  /** `SETTLED_WIDTH` numbers each. */
  readonly settled: ArrayBuffer
  /** Results other than a plain acceptance, with their position. */
  readonly results: readonly (readonly [place: number, result: AttemptResult])[]
}

export interface EncodedReport extends Omit<DispatchRoundReport, 'claimed' | 'endpoints'> {
  readonly endpointIds: readonly string[]
  /** `CLAIMED_WIDTH` numbers each. */
  readonly claimed: ArrayBuffer
  /** The bodies, concatenated. */
  readonly bytes: ArrayBuffer
  /** Null: as in the last report, except for their health. */
  readonly endpoints: readonly EndpointState[] | null
}

const SETTLED_WIDTH = 12
const CLAIMED_WIDTH = 10
type AttemptResult = SettledAttempt['result']

/** Stands for a missing time or a missing body. */
const NONE = -1

export function encodeRound({ settled, ...rest }: DispatchRound): EncodedRound {
  const places = createPlaces()
  const numbers = new Float64Array(settled.length * SETTLED_WIDTH)
  const results: [number, AttemptResult][] = []
  for (const [place, attempt] of settled.entries()) {
    const { deliveryId, endpointId, parcelId, sequence, plannedAtMs, attempts, spared, firstFailedAtMs, atMs, random, result } = attempt
    const isPlain = result.kind === 'accepted' && result.answerStart.byteLength === 0 && result.byNextKey === undefined
    // Copied, because a view would be sent with the whole buffer behind it.
    if (!isPlain) results.push([place, { ...result, answerStart: new Uint8Array(result.answerStart) }])
    const status = result.kind === 'failed' ? NONE : result.status
    const at = place * SETTLED_WIDTH
    numbers[at] = deliveryId
    numbers[at + 1] = places.of(endpointId)
    numbers[at + 2] = parcelId
    numbers[at + 3] = sequence
    numbers[at + 4] = attempts
    numbers[at + 5] = firstFailedAtMs ?? NONE
    numbers[at + 6] = atMs
    numbers[at + 7] = random
    numbers[at + 8] = result.durationMs
    numbers[at + 9] = status
    numbers[at + 10] = plannedAtMs
    numbers[at + 11] = spared
  }
  return { ...rest, endpointIds: places.all(), settled: numbers.buffer, results }
}

export function decodeRound({ endpointIds, settled: packed, results, ...rest }: EncodedRound): DispatchRound {
  const numbers = new Float64Array(packed)
  const settled: SettledAttempt[] = []
  let nextResult = 0
  for (let at = 0; at < numbers.length; at += SETTLED_WIDTH) {
    const [place, listed] = results[nextResult] ?? []
    const isListed = listed !== undefined && place === settled.length
    if (isListed) nextResult++
    settled.push({
      deliveryId: numberAt(numbers, at),
      endpointId: endpointIds[numberAt(numbers, at + 1)] ?? '',
      parcelId: numberAt(numbers, at + 2),
      sequence: numberAt(numbers, at + 3),
      plannedAtMs: numberAt(numbers, at + 10),
      attempts: numberAt(numbers, at + 4),
      spared: numberAt(numbers, at + 11),
      firstFailedAtMs: timeAt(numbers, at + 5),
      atMs: numberAt(numbers, at + 6),
      random: numberAt(numbers, at + 7),
      result: isListed
        ? listed
        : { kind: 'accepted', status: numberAt(numbers, at + 9), durationMs: numberAt(numbers, at + 8), answerStart: EMPTY },
    })
  }
  return { ...rest, settled }
}

/** Sends the endpoints only when they have changed. Needs a new encoder for each thread. */
export function createReportEncoder(): (report: DispatchRoundReport) => EncodedReport {
  let sent: readonly EndpointState[] | null = null
  return ({ claimed, endpoints, ...rest }) => {
    const known = sent
    const isKnown = known !== null && known.length === endpoints.length && endpoints.every((state, at) => isSame(state, known[at]))
    sent = endpoints
    const places = createPlaces()
    const numbers = new Float64Array(claimed.length * CLAIMED_WIDTH)
    const bytes = new Uint8Array(claimed.reduce((sum, { body }) => sum + (body?.byteLength ?? 0), 0))
    let end = 0
    for (const [place, delivery] of claimed.entries()) {
      const { deliveryId, endpointId, parcelId, sequence, previousSequence, plannedAtMs, attempts, spared, firstFailedAtMs, body } =
        delivery
      const at = place * CLAIMED_WIDTH
      numbers[at] = deliveryId
      numbers[at + 1] = places.of(endpointId)
      numbers[at + 2] = parcelId
      numbers[at + 3] = sequence
      numbers[at + 4] = previousSequence
      numbers[at + 5] = attempts
      numbers[at + 6] = firstFailedAtMs ?? NONE
      numbers[at + 7] = body?.byteLength ?? NONE
      numbers[at + 8] = plannedAtMs
      numbers[at + 9] = spared
      if (body === null) continue
      bytes.set(body, end)
      end += body.byteLength
    }
    return { ...rest, endpointIds: places.all(), claimed: numbers.buffer, bytes: bytes.buffer, endpoints: isKnown ? null : endpoints }
  }
}

export function createReportDecoder(): (report: EncodedReport) => DispatchRoundReport {
  let known: readonly EndpointState[] = []
  return ({ endpointIds, claimed: packed, bytes, endpoints, ...rest }) => {
    known = endpoints ?? known
    const numbers = new Float64Array(packed)
    let end = 0
    const claimed: ClaimedDelivery[] = []
    for (let at = 0; at < numbers.length; at += CLAIMED_WIDTH) {
      const length = numberAt(numbers, at + 7)
      claimed.push({
        deliveryId: numberAt(numbers, at),
        endpointId: endpointIds[numberAt(numbers, at + 1)] ?? '',
        parcelId: numberAt(numbers, at + 2),
        sequence: numberAt(numbers, at + 3),
        previousSequence: numberAt(numbers, at + 4),
        plannedAtMs: numberAt(numbers, at + 8),
        attempts: numberAt(numbers, at + 5),
        spared: numberAt(numbers, at + 9),
        firstFailedAtMs: timeAt(numbers, at + 6),
        body: length === NONE ? null : Buffer.from(bytes, end, length),
      })
      end += Math.max(0, length)
    }
    return { ...rest, claimed, endpoints: known }
  }
}

const EMPTY = new Uint8Array()

function numberAt(numbers: Float64Array, at: number): number {
  return numbers[at] ?? 0
}

function timeAt(numbers: Float64Array, at: number): number | null {
  const atMs = numberAt(numbers, at)
  return atMs === NONE ? null : atMs
}

/** Numbers names, from 0. */
function createPlaces() {
  const places = new Map<string, number>()
  return {
    of(name: string): number {
      const place = places.get(name) ?? places.size
      places.set(name, place)
      return place
    },
    all: () => [...places.keys()],
  }
}

function isSame(state: EndpointState, known: EndpointState | undefined): boolean {
  if (known === undefined || state.endpoint !== known.endpoint || state.keys !== known.keys) return false
  // Of the health, only whether it is probed decides what is sent.
  return state.disabled === known.disabled && (state.health.probing === null) === (known.health.probing === null)
}
