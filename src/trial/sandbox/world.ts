import type { Amendment, ParcelPlan, Scan } from './parcel-plan.ts'
import { drawFor } from './random.ts'
import { type Language, languages, type Texts } from './vocabulary.ts'
import { allAnswer, type Labels, latestAnswer, type PublishedEntry, pushBody } from './wire.ts'

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

export interface World {
  /** Takes a step, and returns the event to push. Null: the step causes no push. */
  apply(step: Step): PushEvent | null
  /** Adds a parcel while the sandbox runs. Throws a RangeError if another parcel has one of its identifiers. */
  add(plan: ParcelPlan): void
  /** Returns the tracking number of the parcel that the pull API finds by an identifier. Null: it finds none. */
  find(identifier: string): string | null
  all(trackingNumber: string, language: Language | null): string | null
  latest(trackingNumber: string, language: Language | null): string | null
  parcels(): readonly ParcelNow[]
}

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

export function createWorld(plans: readonly ParcelPlan[], seed: number, languageGaps: () => number): World {
  const states = new Map<string, ParcelState>()
  const numbers = new Map<string, string>()

  const put = (state: ParcelState): void => {
    const { trackingNumber, numberOnly } = state.plan
    states.set(trackingNumber, state)
    for (const identifier of [trackingNumber, ...(numberOnly ? [] : state.trackingIds)]) numbers.set(identifier, trackingNumber)
  }
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
    apply: (step) => {
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
    find: (identifier) => numbers.get(identifier) ?? null,
    all: (trackingNumber, language) => {
      const state = states.get(trackingNumber)
      return state === undefined ? null : allOf(state, language)
    },
    latest: (trackingNumber, language) => {
      const state = states.get(trackingNumber)
      return state === undefined ? null : latestAnswer(labelsOf(state), state.entries.map(spoken), language)
    },
    parcels: () =>
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
