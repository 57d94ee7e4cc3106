import type { Incoming } from '../../../src/core/domain/history/recording.ts'
import { parsePush } from '../../../src/core/domain/ingest/parse-push.ts'
import { HOUR_MS } from '../runner/constants.ts'
import { drawWith, seeded } from '../runner/seeded.ts'
import { aPoll, type PolledEntry, type PushFields, pushBody } from './builders.ts'

const STATUSES = [
  { status: 'Created', detailedStatus: 'Created' },
  { status: 'TerminalArrived', detailedStatus: 'ArrivedT2' },
  { status: 'DeliveryStarted', detailedStatus: 'DeliveryStarted' },
  { status: 'Delivered', detailedStatus: 'DeliveredToMailbox' },
] as const
const TEXTS = [{ en: 'Arrived', sv: 'Framme' }, { sv: 'På väg' }, { en: 'On its way' }, { en: '' }] as const
const BROKEN = [
  '{"status":"Created"',
  '[]',
  '{"status":"","detailedStatus":"x"}',
  '{"status":"Created","detailedStatus":"Created","eventTime":"never"}',
]

export interface SeededObservations {
  /** Returns the next poll or push of a parcel, or repeats an earlier push. Parcels are numbered from 0. */
  next(nowMs: number): Incoming
  /** Returns a poll that names tracking ids of two parcels, and so joins them. */
  join(one: number, other: number, nowMs: number): Incoming
}

export const trackingNumberOf = (parcel: number) => `AB${100_000_000 + parcel}SE`
export const trackingIdOf = (parcel: number, nth = 0) => `${1000 + parcel}${nth}`

/** The same seed gives the same pushes and polls in every run. */
export function seededObservations(seed: number, parcels: number): SeededObservations {
  const random = seeded(seed)
  const { below, pick } = drawWith(random)
  const pushed: Buffer[] = []

  /** Returns a time within the last day. Some have no milliseconds, and many share a second. */
  const timeOf = (nowMs: number) => {
    const atMs = nowMs - below(48) * (HOUR_MS / 2)
    const second = new Date(atMs).toISOString().slice(0, 19)
    return `${second}${pick(['Z', '.000Z', '.250Z'])}`
  }

  function nextPush(nowMs: number): Buffer {
    const parcel = below(parcels)
    const unknown = { weightGrams: below(3) * 100, note: null }
    const fields: PushFields = {
      ...pick(STATUSES),
      eventTime: random() < 0.05 ? '2024-01-01T00:00:00.000Z' : timeOf(nowMs),
      location: pick(['Lund', 'Umeå', '', null]),
      trackingIds: random() < 0.3 ? [trackingIdOf(parcel), trackingIdOf(parcel, 1)] : [trackingIdOf(parcel)],
      distributionType: pick(['Mailbox', 'Home', '']),
      displayToConsumer: random() < 0.8,
      texts: pick(TEXTS),
    }
    return pushBody(random() < 0.2 ? { ...fields, ...unknown } : fields)
  }

  function nextBody(nowMs: number): Buffer {
    const kind = random()
    if (kind < 0.1) return pushed[below(pushed.length)] ?? nextPush(nowMs)
    if (kind < 0.16) return Buffer.from(`${BROKEN[below(BROKEN.length)]}${' '.repeat(below(4))}`)
    const body = nextPush(nowMs)
    pushed.push(body)
    return body
  }

  const polledEntry = (nowMs: number): PolledEntry => ({
    ...pick(STATUSES),
    eventTimestamp: timeOf(nowMs),
    location: pick(['Lund', 'Umeå', '']),
    detailedStatusDescription: pick(['Arrived', 'Framme', '']),
    consumerDescription: pick(['Arrived', null]),
    displayToConsumer: random() < 0.8,
    ...(random() < 0.2 ? { weightGrams: below(3) * 100 } : {}),
  })

  function nextPoll(nowMs: number): Incoming {
    const parcel = below(parcels)
    const statuses = Array.from({ length: 1 + below(4) }, () => polledEntry(nowMs))
    const observation = aPoll({
      asked: trackingNumberOf(parcel),
      language: pick(['en', 'sv']),
      askedAtMs: nowMs,
      trackingIds: [trackingIdOf(parcel)],
      distributionType: pick(['Mailbox', 'Home']),
      statuses: random() < 0.1 ? [...statuses, { eventTimestamp: 'never' }] : statuses,
      extra: random() < 0.2 ? { carrierNote: pick(['', 'late']) } : {},
    })
    return { kind: 'poll', observation, watch: random() < 0.7 }
  }

  return {
    next: (nowMs) =>
      random() < 0.3
        ? nextPoll(nowMs)
        : parsePush({ body: nextBody(nowMs), contentEncoding: null, receivedAtMs: nowMs, keyIndex: below(2) }),
    join: (one, other, nowMs) => ({
      kind: 'poll',
      watch: true,
      observation: aPoll({
        asked: trackingNumberOf(one),
        askedAtMs: nowMs,
        trackingIds: [trackingIdOf(one), trackingIdOf(other)],
        statuses: [polledEntry(nowMs)],
      }),
    }),
  }
}
