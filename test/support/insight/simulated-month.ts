import { encodeAll, encodeLatest } from '../../../src/core/domain/history/pull-response.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { createLookBack } from '../../../src/insight/as-of/create-look-back.ts'
import type { PolledEntry } from '../history/builders.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, NOON } from '../runner/constants.ts'
import { drawWith, seeded } from '../runner/seeded.ts'
import { openErasures } from '../store/erasures.ts'

const LANGUAGES = ['sv', 'en']
const STATUSES = ['Created', 'TerminalArrived', 'DeliveryStarted', 'DeliverySucceeded']

/** What an identifier is answered, in every language; null: a 404. */
export type Answers = Readonly<Record<string, string | null>> | null

export interface Said {
  /** The latest time that the clock had shown. */
  readonly atMs: number
  readonly answers: ReadonlyMap<string, Answers>
}

/** Opens a store with what looks back at it. `answersTo`: what apps are answered now; `answersAt`: what the relay tells of an earlier time. */
export async function openLookBack(engine: Engine, place: string | null = null) {
  const store = await openErasures(engine, place)
  const { reads, writes, now } = store
  const clock = { now, monotonic: now }
  const lookBack = createLookBack({ reads, write: writes, clock, languages: () => LANGUAGES })
  const look = async (identifier: string, asOfMs: number, language: string | null = null) =>
    await lookBack({ identifier, asOfMs, sinceMs: null, language }).catch((error: unknown) => ({ error: Object(error) }))
  return {
    ...store,
    lookBack,
    look,
    async answersTo(identifier: string): Promise<Answers> {
      const view = await reads.findParcel(identifier)
      if (view === null || (view.lastSeenAtMs === null && view.entries.length === 0)) return null
      const bodies = LANGUAGES.flatMap((language) => {
        const preference = [language, ...LANGUAGES]
        return [
          [`all ${language}`, encodeAll(view, preference).body],
          [`latest ${language}`, encodeLatest(view, preference)?.body ?? null],
        ]
      })
      const inspected = await reads.inspectParcel(identifier)
      return Object.fromEntries([
        ...bodies,
        ['relay', shownOf(inspected?.entries ?? [], inspected?.identifiers.map(({ value, isTrackingId }) => [value, isTrackingId]) ?? [])],
      ])
    },
    async answersAt(identifier: string, atMs: number): Promise<{ readonly answers: Answers; readonly approximate: readonly string[] }> {
      const all: [string, string | null][] = []
      let approximate: readonly string[] = []
      for (const language of LANGUAGES) {
        const found = await look(identifier, atMs, language)
        if ('error' in found) return { answers: null, approximate: found.error.facts?.approximate ?? [] }
        approximate = found.approximate
        all.push(
          [`all ${language}`, found.answer.all],
          [`latest ${language}`, found.answer.latest],
          ['relay', shownOf(found.entries, [...found.identifiers])],
        )
      }
      return { answers: Object.fromEntries(all), approximate }
    },
    /** Puts the clock back, and tells the store as a relay does. */
    async putBack(byMs: number) {
      store.setClock(now() - byMs)
      await writes.shiftSchedule({ byMs, sinceMs: now(), nowMs: now(), afterParcelId: 0, limit: 500 })
    },
  }
}

type Entries = Awaited<ReturnType<ReturnType<typeof createLookBack>>>['entries']

/** What `/relay/parcels` shows, without the times of repeated polls. */
function shownOf(entries: Entries, identifiers: readonly (readonly [string, boolean])[]): string {
  const shown = entries.map(({ members, ...entry }) => ({
    ...entry,
    texts: Object.entries(entry.texts).sort(([a], [b]) => (a < b ? -1 : 1)),
    members: members.map(({ sighting, sequence, learntAtMs }) => [sighting.source, sequence, learntAtMs, Object.keys(sighting.texts)]),
  }))
  return JSON.stringify([shown, identifiers.toSorted(([a], [b]) => (a < b ? -1 : 1))])
}

export type LookedBack = Awaited<ReturnType<typeof openLookBack>>

interface Truth {
  readonly ids: readonly string[]
  readonly number: string
  entries: readonly PolledEntry[]
}

/**
 * Lives through a month: pushes and polls, late, repeated, reworded and back-dated entries, joins, and a clock that is put back. Returns what apps were
 * answered after each step, and when the parcel of each identifier was joined last.
 */
export async function liveThroughMonth(store: LookedBack, seed: number, steps: number) {
  const { below, pick } = drawWith(seeded(seed))
  const truths: readonly Truth[] = Array.from({ length: 4 }, (_, nth) => ({
    ids: [`100${nth}1`, `100${nth}2`],
    number: `AB10000000${nth}SE`,
    entries: [],
  }))
  const identifiers = truths.flatMap(({ ids, number }) => [...ids, number])
  const said: Said[] = []
  let reachedMs = store.now()
  const joinedMs = new Map<number, number>()

  const timeOf = () => `${new Date(NOON + below(30) * HOUR_MS).toISOString().slice(0, 19)}${pick(['Z', '.250Z', '.500Z'])}`
  const words = (text: string) => ({ detailedStatusDescription: text, consumerDescription: text })
  const aging = () => (below(8) === 0 ? { ageSeconds: below(3) } : {})

  async function push(truth: Truth) {
    const listed = truth.entries[below(truth.entries.length + 1)]
    const status = listed?.status ?? pick(STATUSES)
    const text = pick(['Framme', 'Hämtas', ''])
    await store.push({
      status,
      detailedStatus: status,
      eventTime: listed?.eventTimestamp ?? timeOf(),
      location: pick(['Lund', 'Lund', '', null]),
      trackingIds: below(4) === 0 ? truth.ids : truth.ids.slice(0, 1),
      distributionType: pick(['Mailbox', 'Home', '']),
      displayToConsumer: below(4) > 0,
      texts: pick([{ sv: text }, { en: text, sv: text }, { en: 'Arrived' }]),
    })
  }

  function happen(truth: Truth) {
    const status = pick(STATUSES)
    const entry = {
      status,
      detailedStatus: status,
      eventTimestamp: timeOf(),
      location: pick(['Lund', 'Umeå', '']),
      displayToConsumer: below(4) > 0,
      ...words('På väg'),
    }
    truth.entries = [entry, ...truth.entries]
  }

  async function poll(truth: Truth) {
    if (below(3) === 0) happen(truth)
    if (below(6) === 0)
      truth.entries = truth.entries.map((entry) =>
        below(2) === 0 ? { ...entry, ...words(pick(['Framme', 'På väg', 'Levererad'])) } : entry,
      )
    if (below(10) === 0) truth.entries = truth.entries.toReversed()
    const language = pick(['sv', 'sv', 'en'])
    const told = below(8) === 0 ? truth.entries.slice(1) : truth.entries
    await store.poll({
      asked: pick([truth.number, ...truth.ids]),
      language,
      trackingIds: below(4) === 0 ? truth.ids : truth.ids.toReversed().slice(0, 1),
      askedAtMs: store.now() - (below(6) === 0 ? below(4) * HOUR_MS : 0),
      statuses: told.map((entry) => ({ ...entry, ...(language === 'en' && below(3) > 0 ? words('On its way') : {}), ...aging() })),
      distributionType: pick(['Mailbox', 'Mailbox', 'Home']),
      extra: below(8) === 0 ? { revision: below(3) } : {},
    })
  }

  const join = async () => {
    await store.push({ trackingIds: [pick(truths).ids[0], pick(truths).ids[1]], eventTime: timeOf() })
  }

  for (let step = 0; step < steps; step++) {
    store.pass(pick([MINUTE_MS, HOUR_MS, DAY_MS / 2]) + below(1000))
    reachedMs = Math.max(reachedMs, store.now())
    if (below(25) === 0) await store.putBack(pick([HOUR_MS, DAY_MS]))
    const what = below(40)
    if (what === 0) await join()
    else if (what < 18) await push(pick(truths))
    else await poll(pick(truths))
    const answers = new Map<string, Answers>()
    for (const identifier of identifiers) answers.set(identifier, await store.answersTo(identifier))
    said.push({ atMs: reachedMs, answers })
    for (const { sequence, kind } of (await store.reads.readFeed({ after: 0, limit: 10_000 })).items)
      if (kind === 'join' && !joinedMs.has(sequence)) joinedMs.set(sequence, reachedMs)
  }
  // A time that the clock has shown twice means the last that was answered by the first.
  const last = new Map(said.map((one) => [one.atMs, one]))
  const joined = new Map<string, number>()
  for (const item of (await store.reads.readFeed({ after: 0, limit: 10_000 })).items)
    if ('joined' in item && item.kind === 'join')
      for (const identifier of item.parcel.identifiers) joined.set(identifier, joinedMs.get(item.sequence) ?? 0)
  return { identifiers, said: [...last.values()], joinedMs: joined }
}
