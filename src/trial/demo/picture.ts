import type { SandboxParcel } from '../sandbox/control-api.ts'

export interface PushCounts {
  /** The number of stored pushes, duplicates included. */
  readonly received: number
  readonly duplicates: number
}

export interface ReplicaNews {
  readonly name: string
  readonly isRunning: boolean
  readonly pushes: PushCounts
  /** The names of its present roles, such as `poller`. */
  readonly roles: readonly string[]
}

/**
 * How the relay learned of an event. `pushed`: its push arrived. `polled`: a poll found it, and its push is lost or late. `missing`: the relay does
 * not know it yet.
 */
export type Mark = 'pushed' | 'polled' | 'missing'

export interface EventPicture {
  readonly title: string
  /** Whether the push of this event is lost: the carrier has dropped it, or no longer tries to send it. */
  readonly lost: boolean
  readonly mark: Mark
}

export interface ParcelPicture {
  readonly trackingNumber: string
  /** Oldest first. */
  readonly events: readonly EventPicture[]
  /** Whether all events of the parcel have happened and the relay's history (`/all`) is byte for byte the carrier's. */
  readonly complete: boolean
}

export interface Picture {
  readonly parcels: readonly ParcelPicture[]
  readonly replicas: readonly ReplicaNews[]
  /** `events`: the distinct events that the subscriber received. `wrong`: how many pushes to it had a wrong signature. The others: what watchdogs told it. */
  readonly subscriber: { readonly events: number; readonly wrong: number; readonly stalled: number; readonly recovered: number }
}

export interface Totals {
  readonly complete: number
  readonly parcels: number
  readonly events: number
  readonly lost: number
  /** How many events with a lost push were found by a poll. */
  readonly filled: number
  readonly pushes: PushCounts
}

type Push = SandboxParcel['pushes'][number]

/** Compares a parcel at the carrier and at the relay. `history`: the body of the relay's answer to `/all`; null: the relay has no history. */
export function pictureOf(
  { trackingNumber, entries, entriesPlanned, answers, pushes }: SandboxParcel,
  history: string | null,
): ParcelPicture {
  const held = countBy(history === null ? [] : entriesIn(history), (entry) => keyOf(entry, 'eventTimestamp'))
  const marks = new Map<Push, Mark>()
  for (const [key, group] of Map.groupBy(pushes, ({ body }) => keyOf(JSON.parse(body), 'eventTime'))) {
    const [arrived, others] = [group.filter(hasArrived), group.filter((push) => !hasArrived(push))]
    // If the relay has more entries than pushes have arrived, polls have found the rest.
    const beyond = Math.max(0, (held.get(key) ?? 0) - arrived.length)
    for (const push of arrived) marks.set(push, 'pushed')
    for (const [nth, push] of others.toSorted((a, b) => Number(isLost(b)) - Number(isLost(a))).entries())
      marks.set(push, nth < beyond ? 'polled' : 'missing')
  }
  return {
    trackingNumber,
    complete: entries >= entriesPlanned && history === answers.en,
    events: pushes.map((push) => ({ title: titleOf(push), lost: isLost(push), mark: marks.get(push) ?? 'missing' })),
  }
}

export function totalsOf({ parcels, replicas }: Picture): Totals {
  const sum = (name: keyof PushCounts) => replicas.reduce((total, { pushes }) => total + pushes[name], 0)
  const events = parcels.flatMap((parcel) => parcel.events)
  return {
    complete: parcels.filter(({ complete }) => complete).length,
    parcels: parcels.length,
    events: events.length,
    lost: events.filter(({ lost }) => lost).length,
    filled: events.filter(isFilled).length,
    pushes: { received: sum('received'), duplicates: sum('duplicates') },
  }
}

/** Whether a poll found an event whose push is lost. `mark` alone does not tell, because an event whose push is only late is `polled` too. */
function isFilled({ lost, mark }: EventPicture): boolean {
  return lost && mark === 'polled'
}

function hasArrived({ attempts }: Push): boolean {
  return attempts.some(({ status }) => status !== null && status >= 200 && status < 300)
}

function isLost(push: Push): boolean {
  return push.fate !== 'waiting' && !hasArrived(push)
}

/** Compares times to the second, because some of the carrier's answers leave out milliseconds. */
function keyOf(entry: unknown, time: 'eventTime' | 'eventTimestamp'): string {
  return JSON.stringify([textOf(entry, 'status'), textOf(entry, 'detailedStatus'), textOf(entry, time).slice(0, 19)])
}

function titleOf({ body }: Push): string {
  const event: unknown = JSON.parse(body)
  const [status, detailed, location] = ['status', 'detailedStatus', 'location'].map((name) => textOf(event, name))
  return [status, ...(detailed === status ? [] : [detailed]), ...(location === '' ? [] : [location])].join(' ')
}

function entriesIn(history: string): readonly unknown[] {
  const answer: unknown = JSON.parse(history)
  return typeof answer === 'object' && answer !== null && 'statuses' in answer && Array.isArray(answer.statuses) ? answer.statuses : []
}

function textOf(value: unknown, name: string): string {
  const member: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
  return typeof member === 'string' ? member : ''
}

function countBy<T>(items: readonly T[], keyFor: (item: T) => string): ReadonlyMap<string, number> {
  return new Map([...Map.groupBy(items, keyFor)].map(([key, group]) => [key, group.length]))
}

export type HappeningKind = 'pushed' | 'lost' | 'filled' | 'complete' | 'relayed' | 'stalled' | 'recovered'

export interface Happening {
  readonly kind: HappeningKind
  readonly trackingNumber: string
  readonly about: string
}

/** Lists what has happened between two pictures. `before` null: `now` is the first picture. */
export function happeningsBetween(before: Picture | null, now: Picture): readonly Happening[] {
  const earlier = new Map(before?.parcels.map((parcel) => [parcel.trackingNumber, parcel]))
  return now.parcels.flatMap((parcel) => happeningsOf(earlier.get(parcel.trackingNumber), parcel))
}

function happeningsOf(before: ParcelPicture | undefined, { trackingNumber, events, complete }: ParcelPicture): readonly Happening[] {
  const happened = events.flatMap((event, nth) =>
    eventHappenings(before?.events[nth], event).map((kind) => ({ kind, trackingNumber, about: event.title })),
  )
  if (!complete || before?.complete === true) return happened
  return [...happened, { kind: 'complete', trackingNumber, about: `${events.length} entries, the same bytes as the carrier's` }]
}

function eventHappenings(before: EventPicture | undefined, now: EventPicture): readonly HappeningKind[] {
  return [
    ...(now.mark === 'pushed' && before?.mark !== 'pushed' ? (['pushed'] as const) : []),
    ...(now.lost && before?.lost !== true ? (['lost'] as const) : []),
    ...(isFilled(now) && (before === undefined || !isFilled(before)) ? (['filled'] as const) : []),
  ]
}

/** Shows the demo's progress, on a terminal or in a file. */
export interface View {
  /** Prints text that the picture does not overwrite. */
  note(text: string): void
  /** Replaces the lines that are always shown below the picture. A note, in contrast, scrolls away. */
  pin(lines: readonly string[]): void
  show(picture: Picture, happenings: readonly Happening[]): void
  end(text: string): void
}
