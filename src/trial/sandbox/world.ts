import { createHmac } from 'node:crypto'
import { type Amendment, drawFor, type Member, type ParcelPlan, type PullTime, type Scan } from './parcel-plan.ts'
import { type Language, languages, type Texts } from './vocabulary.ts'

/** The data about the parcel itself, which the body of each push and pull contains. */
interface Labels {
  readonly trackingIds: readonly string[]
  readonly distributionType: string
  readonly extra: readonly Member[]
}

/** A published entry with its current texts, which an amendment may have changed. */
interface PublishedEntry {
  readonly scan: Scan
  readonly texts: Texts
}

function objectOf(members: readonly Member[]): string {
  return `{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`
}

function spacedObjectOf(members: readonly Member[]): string {
  return `{\r\n${members.map(([name, json]) => `  ${JSON.stringify(name)} : ${json}`).join(',\r\n')}\r\n}\n`
}

function pullTimeOf(atMs: number, form: PullTime): string {
  const text = new Date(atMs).toISOString()
  if (form === 'milliseconds') return text
  return `${text.slice(0, 19)}${form === 'zeros' ? '.000Z' : 'Z'}`
}

function pullEntry({ scan, texts }: PublishedEntry, language: Language | null): string {
  const said = language === null ? undefined : texts[language]
  return objectOf([
    ['status', JSON.stringify(scan.status)],
    ['detailedStatus', JSON.stringify(scan.detailedStatus)],
    ['eventTimestamp', JSON.stringify(pullTimeOf(scan.atMs, scan.pullTime))],
    ['location', JSON.stringify(scan.pullLocation)],
    ['detailedStatusDescription', JSON.stringify(said?.detailed ?? '')],
    ['consumerDescription', JSON.stringify(scan.displayToConsumer ? (said?.consumer ?? null) : null)],
    ['displayToConsumer', String(scan.displayToConsumer)],
    ...scan.extra,
  ])
}

function labelMembers({ trackingIds, distributionType, extra }: Labels): readonly Member[] {
  return [['trackingIds', JSON.stringify(trackingIds)], ['distributionType', JSON.stringify(distributionType)], ...extra]
}

function newestFirst(a: PublishedEntry, b: PublishedEntry): number {
  return b.scan.atMs - a.scan.atMs || a.scan.tie - b.scan.tie || (a.scan.id < b.scan.id ? -1 : 1)
}

/** Makes the body of an `all` answer. `language` null: the carrier has no texts in the language that was asked for. */
function allAnswer(labels: Labels, entries: readonly PublishedEntry[], language: Language | null): string {
  const statuses = entries.toSorted(newestFirst).map((entry) => pullEntry(entry, language))
  return objectOf([['statuses', `[${statuses.join(',')}]`], ...labelMembers(labels)])
}

/** Makes the body of a `latest` answer. Null: nothing has happened yet. */
function latestAnswer(labels: Labels, entries: readonly PublishedEntry[], language: Language | null): string | null {
  const [newest] = entries.toSorted(newestFirst)
  return newest === undefined ? null : objectOf([['status', pullEntry(newest, language)], ...labelMembers(labels)])
}

function localized(texts: Texts, textOf: (language: Language) => string | undefined): string {
  const spoken = languages.toReversed().filter((language) => texts[language] !== undefined)
  return JSON.stringify(spoken.map((languageCode) => ({ value: textOf(languageCode) ?? '', languageCode })))
}

/** Makes the body of a push. `spaced`: whether it has line breaks and indentation. */
function pushBody(labels: Labels, { scan, texts }: PublishedEntry, spaced: boolean): string {
  const members: readonly Member[] = [
    ['status', JSON.stringify(scan.status)],
    ['detailedStatus', JSON.stringify(scan.detailedStatus)],
    ['eventTime', JSON.stringify(new Date(scan.atMs).toISOString())],
    ['location', JSON.stringify(scan.pushLocation)],
    ...labelMembers({ ...labels, extra: [] }),
    ['displayToConsumer', String(scan.displayToConsumer)],
    ['consumerDescription', scan.displayToConsumer ? localized(texts, (language) => texts[language]?.consumer) : '[]'],
    ['detailedStatusDescription', localized(texts, (language) => texts[language]?.detailed)],
    ...scan.extra,
    ...labels.extra,
  ]
  return spaced ? spacedObjectOf(members) : objectOf(members)
}

/** Signs a body. Returns the value of the header `x-service-hmac-sha256`. */
export function signatureOf(body: string, sharedKey: string): string {
  return createHmac('sha256', Buffer.from(sharedKey, 'utf8')).update(Buffer.from(body, 'utf8')).digest('base64')
}

/** `atMs`: in the time of the simulated clock. */
export type Step =
  | { readonly kind: 'publish'; readonly atMs: number; readonly trackingNumber: string; readonly scan: Scan }
  | { readonly kind: 'amend'; readonly atMs: number; readonly trackingNumber: string; readonly amendment: Amendment }
  | { readonly kind: 'identify'; readonly atMs: number; readonly trackingNumber: string; readonly id: string; readonly first: boolean }

/** An event as the carrier would push it. */
export interface PushEvent {
  readonly trackingNumber: string
  /** The id of the entry. This id and the seed decide whether the push is lost or duplicated. */
  readonly scanId: string
  readonly body: string
}

export interface ParcelNow {
  readonly trackingNumber: string
  readonly trackingIds: readonly string[]
  readonly numberOnly: boolean
  readonly entries: number
  /** The number of entries that the parcel will have at the end of its plan. */
  readonly entriesPlanned: number
  /** The current body of the `all` answer in each language. */
  readonly answers: Readonly<Record<Language, string>>
}

export type World = ReturnType<typeof createWorld>

interface ParcelState {
  readonly plan: ParcelPlan
  readonly trackingIds: readonly string[]
  readonly entries: readonly PublishedEntry[]
}

/** Returns all steps of a parcel, in no particular order. */
export function stepsOf({ trackingNumber, scans, amendments, laterTrackingId }: ParcelPlan): readonly Step[] {
  return [
    ...scans.map((scan): Step => ({ kind: 'publish', atMs: scan.publishedAtMs, trackingNumber, scan })),
    ...amendments.map((amendment): Step => ({ kind: 'amend', atMs: amendment.atMs, trackingNumber, amendment })),
    ...(laterTrackingId === null ? [] : [{ kind: 'identify' as const, trackingNumber, ...laterTrackingId }]),
  ]
}

function stepped(parcel: ParcelState, step: Step): ParcelState {
  switch (step.kind) {
    case 'publish':
      return { ...parcel, entries: [...parcel.entries, { scan: step.scan, texts: step.scan.texts }] }
    case 'amend': {
      const { scanId, texts } = step.amendment
      return { ...parcel, entries: parcel.entries.map((entry) => (entry.scan.id === scanId ? { ...entry, texts } : entry)) }
    }
    case 'identify':
      return { ...parcel, trackingIds: step.first ? [step.id, ...parcel.trackingIds] : [...parcel.trackingIds, step.id] }
  }
}

function withGap(seed: number, fraction: number, { scan, texts }: PublishedEntry): PublishedEntry {
  if (drawFor(seed, 'language gap', scan.id) >= fraction) return { scan, texts }
  const kept = languages[drawFor(seed, 'language kept', scan.id) < 0.5 ? 0 : 1]
  const left: Texts = texts[kept] === undefined ? {} : { [kept]: texts[kept] }
  return { scan, texts: left }
}

export function createWorld(plans: readonly ParcelPlan[], seed: number, languageGaps: () => number) {
  const states = new Map<string, ParcelState>()
  const numbers = new Map<string, string>()

  const put = (state: ParcelState): void => {
    const { trackingNumber, numberOnly } = state.plan
    states.set(trackingNumber, state)
    for (const identifier of [trackingNumber, ...(numberOnly ? [] : state.trackingIds)]) numbers.set(identifier, trackingNumber)
  }
  /** Adds a parcel while the sandbox runs. Throws a RangeError if another parcel has one of its identifiers. */
  const add = (plan: ParcelPlan): void => {
    const taken = [plan.trackingNumber, ...plan.trackingIds].find((identifier) => numbers.has(identifier))
    if (taken !== undefined) throw new RangeError(`${taken} belongs to another parcel`)
    put({ plan, trackingIds: plan.trackingIds, entries: [] })
  }
  for (const plan of plans) add(plan)

  const labelsOf = ({ plan, trackingIds }: ParcelState): Labels => ({ ...plan, trackingIds })
  const spoken = (entry: PublishedEntry): PublishedEntry => withGap(seed, languageGaps(), entry)
  const allOf = (state: ParcelState, language: Language | null): string => allAnswer(labelsOf(state), state.entries.map(spoken), language)

  return {
    /** Takes a step, and returns the event to push. Null: the step causes no push. */
    apply: (step: Step): PushEvent | null => {
      const before = states.get(step.trackingNumber)
      if (before === undefined) throw new RangeError(`there is no parcel ${step.trackingNumber}`)
      const state = stepped(before, step)
      put(state)
      if (step.kind !== 'publish') return null
      const entry = spoken({ scan: step.scan, texts: step.scan.texts })
      const body = pushBody(labelsOf(state), entry, state.plan.spacedBodies)
      return { trackingNumber: step.trackingNumber, scanId: step.scan.id, body }
    },
    add,
    /** Returns the tracking number of the parcel that the pull API finds by an identifier. Null: it finds none. */
    find: (identifier: string): string | null => numbers.get(identifier) ?? null,
    all: (trackingNumber: string, language: Language | null): string | null => {
      const state = states.get(trackingNumber)
      return state === undefined ? null : allOf(state, language)
    },
    latest: (trackingNumber: string, language: Language | null): string | null => {
      const state = states.get(trackingNumber)
      return state === undefined ? null : latestAnswer(labelsOf(state), state.entries.map(spoken), language)
    },
    parcels: (): readonly ParcelNow[] =>
      [...states.values()].map((state) => ({
        trackingNumber: state.plan.trackingNumber,
        trackingIds: state.trackingIds,
        numberOnly: state.plan.numberOnly,
        entries: state.entries.length,
        entriesPlanned: Math.max(state.plan.scans.length, state.entries.length),
        answers: { en: allOf(state, 'en'), sv: allOf(state, 'sv') },
      })),
  }
}
