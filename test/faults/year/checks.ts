import { setTimeout as pause } from 'node:timers/promises'
import type { Sandbox } from '../../../src/trial/sandbox/control-api.ts'
import { DAY_MS } from '../../support/runner/constants.ts'
import { textsOfTables } from '../../support/store/all-rows.ts'
import { keyOf, knownAs, madeScans, plantedIn, type YearParcel } from './parcels.ts'
import type { RelayOfYear } from './relay.ts'
import type { StoreOfYear } from './stores.ts'
import type { Violations } from './violations.ts'

export interface Looked {
  readonly relay: RelayOfYear
  readonly store: StoreOfYear
  readonly parcels: readonly YearParcel[]
  readonly violations: Violations
  readonly nowMs: number
  readonly historyMs: number
  /** The longest time for which the relay goes on polling a parcel after its last scan. */
  readonly polledOnMs: number
}

/** The relay must learn of a scan within this time, by a push or a poll. */
const LEARNT_WITHIN_MS = 2 * DAY_MS
/** A parcel may stay this long after its retention period. The hourly pass knows the age of a parcel only roughly, from marks of earlier passes. */
const RETIRED_WITHIN_MS = 2 * DAY_MS

/** Returns when anything last happened to a parcel in the simulation. */
const touchedMs = (parcel: YearParcel): number => Math.max(parcel.askedAtMs, madeScans(parcel).at(-1)?.atMs ?? 0)

/** Tells whether the relay must still have a parcel, must have removed it, or may do either. */
function fateOf(parcel: YearParcel, { nowMs, historyMs, polledOnMs }: Looked): 'living' | 'gone' | 'either' {
  // If no app asked for a parcel and all its pushes were lost, the relay does not know the parcel.
  if (parcel.made === 0 || parcel.askedAtMs === 0) return 'either'
  const ageMs = nowMs - touchedMs(parcel)
  if (ageMs < historyMs - DAY_MS) return 'living'
  return ageMs > historyMs + polledOnMs + RETIRED_WITHIN_MS ? 'gone' : 'either'
}

/** Expects that every living parcel has the carrier's entries, and that no removed parcel is left. The requests made here keep no parcel alive. */
export async function checkHistories(looked: Looked): Promise<{ readonly living: number }> {
  const { relay, parcels, violations, nowMs } = looked
  let living = 0
  for (const parcel of parcels.filter(({ erasedAtMs }) => erasedAtMs === null)) {
    const fate = fateOf(parcel, looked)
    const { status, body, text } = await relay.call('GET', `/relay/parcels/${knownAs(parcel)}`)
    const what = `parcel ${parcel.number} (${knownAs(parcel)}, last touched ${new Date(touchedMs(parcel)).toISOString()})`
    if (status === 404 && fate === 'living') violations.add(`${what} is not known: ${text}`)
    if (status !== 404 && fate === 'gone') violations.add(`${what} was not retired: ${text.slice(0, 600)}`)
    if (status !== 200) continue
    living += 1
    const told = new Set(entriesOf(body))
    for (const scan of madeScans(parcel)) {
      if (!told.delete(keyOf(scan)) && scan.atMs < nowMs - LEARNT_WITHIN_MS) violations.add(`${what} lacks the entry ${keyOf(scan)}`)
    }
    if (told.size > 0) violations.add(`${what} has entries that the carrier lacks: ${[...told].join(', ')}`)
  }
  return { living }
}

function entriesOf({ history }: Readonly<Record<string, unknown>>): readonly string[] {
  return (Array.isArray(history) ? history : []).map(({ status, detailedStatus, eventTimestamp }) =>
    keyOf({ status, detailedStatus, atMs: Date.parse(eventTimestamp) }),
  )
}

/** Expects that the relay serves every living parcel byte for byte as the carrier does. */
export async function checkAnswers(looked: Looked, sandbox: Sandbox): Promise<{ readonly compared: number }> {
  const { relay, parcels, violations } = looked
  const own = new Map(sandbox.world.parcels().map(({ trackingNumber, answers }) => [trackingNumber, answers]))
  let compared = 0
  for (const parcel of parcels) {
    if (parcel.erasedAtMs !== null || fateOf(parcel, looked) !== 'living') continue
    for (const language of ['en', 'sv'] as const) {
      const { status, text } = await relay.call('GET', `/v1/status/${knownAs(parcel)}/all?language=${language}`)
      const expected = own.get(parcel.trackingNumber)?.[language]
      compared += 1
      if (status !== 200 || text !== expected)
        violations.add(`parcel ${parcel.number} in ${language}: the relay says ${status} ${text}; the carrier says ${expected}`)
    }
  }
  return { compared }
}

/** Expects that the store's files contain nothing of a parcel that has just been erased. Backups are older, so they may contain it. */
export function checkErasedFiles({ store, violations }: Pick<Looked, 'store' | 'violations'>, { number }: YearParcel): void {
  for (const { name, text, madeAtMs } of store.files())
    if (madeAtMs === null && plantedIn(text()).has(number)) violations.add(`parcel ${number}, which was just erased, is found in ${name}`)
}

/** The lists of the API, each of which is read to its end. */
const LISTS = ['parcels', 'deliveries', 'inbox', 'audit', 'operator-events', 'jobs', 'refusals', 'endpoints']
const SINGLE = [
  ...['overview', 'upstream', 'retention', 'backups', 'replicas', 'config', 'tallies?kind=pushes'].map((path) => `/relay/${path}`),
  '/metrics',
]

/** Expects that no answer, no row, and no file from after the erasure contains anything of an erased parcel. */
export async function checkErased({ relay, store, parcels, violations }: Looked): Promise<void> {
  const erased = new Map(parcels.flatMap(({ number, erasedAtMs }) => (erasedAtMs === null ? [] : [[number, erasedAtMs]])))
  const search = (text: string, place: string, madeAtMs = Number.POSITIVE_INFINITY) => {
    for (const number of plantedIn(text)) {
      const erasedAtMs = erased.get(number)
      if (erasedAtMs !== undefined && erasedAtMs < madeAtMs) violations.add(`the erased parcel ${number} is found in ${place}`)
    }
  }
  for (const list of LISTS) for await (const page of pagesOf(relay, `/relay/${list}`)) search(page, `GET /relay/${list}`)
  for await (const page of eventsOf(relay)) search(page, 'the feed')
  for (const path of SINGLE) search((await relay.call('GET', path)).text, `GET ${path}`)
  for await (const [table, text] of textsOfTables(store.place())) search(text, `the table ${table}`)
  for (const { name, text, madeAtMs } of store.files()) search(text(), name, madeAtMs ?? undefined)
}

async function* pagesOf(relay: RelayOfYear, path: string): AsyncGenerator<string> {
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { status, text, body } = await relay.call(
      'GET',
      `${path}?limit=500${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    )
    if (status !== 200) throw new Error(`GET ${path}: ${status} ${text}`)
    yield text
    cursor = typeof body.next === 'string' ? body.next : null
  }
}

async function* eventsOf(relay: RelayOfYear): AsyncGenerator<string> {
  const first = await relay.call('GET', '/relay/events?after=0&limit=1')
  let after = first.status === 410 ? Number(first.body.oldestSequence) - 1 : 0
  for (;;) {
    const { status, text, body } = await relay.call('GET', `/relay/events?after=${after}&limit=500`)
    if (status !== 200) throw new Error(`GET /relay/events?after=${after}: ${status} ${text}`)
    yield text
    if (Number(body.next) === after || !Array.isArray(body.events) || body.events.length === 0) return
    after = Number(body.next)
  }
}

export async function until(what: string, isSo: () => Promise<boolean>, withinMs = 60_000): Promise<void> {
  const hangsAtMs = performance.now() + withinMs
  while (!(await isSo())) {
    if (performance.now() > hangsAtMs) throw new Error(`it did not happen in time: ${what}`)
    await pause(5)
  }
}
