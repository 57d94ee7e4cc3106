import { createTallies } from '../../../src/console/tallies/tallies.ts'
import type { QuestionEnd } from '../../../src/core/domain/admin/tally.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import type { CountName } from '../../../src/insight/report/report.rules.ts'
import { createReports } from '../../../src/insight/report/report.ts'
import { aPoll, pushBody } from '../history/builders.ts'
import { recordOptions } from '../history/policy.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../runner/constants.ts'
import { drawWith, seeded } from '../runner/seeded.ts'
import { incomingPush, openStore } from '../store/write-side.ts'

export type Counted = Partial<Record<CountName, number>>
export type ByDay = Map<string, Counted>

/** What the carrier did, as the test remembers it. Days are written as people do; of each is known by which zone it was counted. */
interface Fact {
  readonly name: CountName
  readonly by: number
  /** When it happened; a day: it takes from what was counted on it. */
  readonly at: number | string
  /** When the relay learnt of it; null: it is counted at once, and never as a correction. */
  readonly foundAtMs: number | null
}

const STEP_MS = 3 * HOUR_MS

/** Says which day a clock in a zone shows, by the platform's own formatter. */
export function dateIn(zone: string, atMs: number): string {
  return new Date(atMs).toLocaleDateString('sv-SE', { timeZone: zone })
}

/**
 * Lets the carrier do things at random around days of 23 and 25 hours, while reloads change `zone`, and counts them by its own calendar. Lost pushes may
 * come after all, also when their month has closed.
 */
export async function liveOverDays(engine: Engine, seed: number, zones: readonly string[], [fromMs, toMs]: readonly [number, number]) {
  const { below, pick } = drawWith(seeded(seed))
  const store = await openStore(fromMs, engine)
  let zone = zones[0] ?? 'UTC'
  const settings = () => ({
    zone,
    retention: { reportsMs: 1830 * DAY_MS },
    poll: { missedPushGraceMs: recordOptions.missedPushGraceMs },
  })
  const clock = { now: store.now, monotonic: () => 0 }
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const reports = createReports({ ...store, write: store.writes, clock, log, settings })
  const tallies = createTallies({ write: store.writes, process: 'relay', freeBytes: () => 1, zone: () => zone, clock })
  const days: ByDay = new Map()
  const corrections = new Map<string, ByDay>()
  const outages: { readonly fromMs: number; readonly untilMs: number }[] = []
  let noted: Fact[] = []
  let nth = 0
  /** Entries that only a poll has shown. `day`: on which the loss was counted. */
  const lost: { readonly push: Parameters<typeof pushBody>[0]; readonly atMs: number; day: string | null }[] = []

  const addTo = (to: ByDay, day: string, name: CountName, by: number) => {
    const counts = to.get(day) ?? {}
    counts[name] = (counts[name] ?? 0) + by
    to.set(day, counts)
  }
  const count = ({ name, by, at, foundAtMs }: Fact) => {
    const day = typeof at === 'string' ? at : dateIn(zone, at)
    const month = day.slice(0, 7)
    const closes = new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)), 15)).toISOString().slice(0, 10)
    const foundOn = foundAtMs === null ? null : dateIn(zone, foundAtMs)
    if (foundOn === null || foundOn < closes) return addTo(days, day, name, by)
    const ofMonth = corrections.get(month) ?? new Map()
    corrections.set(month, ofMonth)
    addTo(ofMonth, foundOn, name, by)
  }
  const fold = async () => {
    await reports.fold()
    for (const fact of noted) count(fact)
    noted = []
    for (const one of lost) one.day ??= dateIn(zone, one.atMs)
  }
  const note = (name: CountName, at: number | string, by = 1) => void noted.push({ name, at, by, foundAtMs: store.now() })
  const iso = (atMs: number) => new Date(atMs).toISOString()
  const fieldsAt = (atMs: number, id: string, status = 'Created') => ({
    status,
    detailedStatus: status,
    eventTime: iso(atMs),
    trackingIds: [id],
  })
  const nextId = () => String(5_000_000 + ++nth)
  const notePushed = (eventMs: number) => {
    const atMs = Math.min(eventMs, store.now())
    note('pushed', atMs)
    if (store.now() - eventMs > recordOptions.missedPushGraceMs) note('late', atMs)
  }

  const happen: readonly (() => Promise<unknown>)[] = [
    async () => {
      const eventMs = store.now() - pick([0, 1000, MINUTE_MS, HOUR_MS, DAY_MS, 40 * DAY_MS, 70 * DAY_MS, -HOUR_MS]) - below(MINUTE_MS)
      const push = incomingPush(pushBody(fieldsAt(eventMs, nextId())), store.now())
      await store.record(push)
      notePushed(eventMs)
      for (let again = below(4); again > 1; again--) {
        await store.record({ ...push, receivedAtMs: store.now() })
        note('repeated', store.now())
      }
    },
    async () => {
      await store.record(incomingPush(Buffer.from(`no event ${nextId()}`), store.now()))
      note('quarantined', store.now())
    },
    async () => {
      const [id, beganMs] = [nextId(), store.now()]
      await store.record(incomingPush(pushBody(fieldsAt(beganMs, id)), beganMs))
      notePushed(beganMs)
      const atMs = store.pass(20 * MINUTE_MS + below(30 * MINUTE_MS))
      store.pass(below(MINUTE_MS))
      const [known, missed] = [fieldsAt(beganMs, id), fieldsAt(atMs, id, 'Ingested')]
      const statuses = [missed, known].map(({ eventTime, ...one }) => ({ ...one, eventTimestamp: eventTime }))
      await store.record({
        kind: 'poll',
        observation: aPoll({ asked: id, trackingIds: [id], askedAtMs: store.now(), statuses }),
        watch: true,
      })
      store.pass(recordOptions.missedPushGraceMs + 2000)
      await store.writes.settleMissedPushes(store.now())
      note('lost', atMs)
      lost.push({ push: missed, atMs, day: null })
    },
    async () => {
      const at = below(lost.length + 1)
      const one = lost[at]
      if (one === undefined) return
      await fold()
      lost.splice(at, 1)
      await store.record(incomingPush(pushBody(one.push), store.now()))
      note('lost', one.day ?? '', -1)
      notePushed(one.atMs)
    },
    async () => {
      for (const end of ['answered', 'slow', 'failed', 'limited'] as const satisfies readonly QuestionEnd[]) {
        const times = below(3)
        for (let time = 0; time < times; time++) tallies.polled(end)
        count({ name: end, by: times, at: store.now(), foundAtMs: null })
        // A slow answer is an answer.
        if (end === 'slow') count({ name: 'answered', by: times, at: store.now(), foundAtMs: null })
      }
    },
    async () => {
      const untilMs = store.now() + below(30) * MINUTE_MS
      const subject = 'carrier'
      await store.writes.beginTrouble({
        subject,
        event: { event: 'carrier_failing', since: iso(store.now()), reason: null, status: null },
        nowMs: store.now(),
      })
      outages.push({ fromMs: store.now(), untilMs })
      store.setClock(untilMs)
      await store.writes.endTrouble({ subject, event: { event: 'carrier_recovered' }, nowMs: untilMs })
    },
    fold,
    async () => {
      // A reload. What was noted before it may be counted by the new zone.
      if (below(2) === 0) await fold()
      await tallies.flush()
      zone = pick(zones)
    },
  ]
  while (store.now() < toMs) {
    store.pass(below(STEP_MS) + 1)
    await pick(happen)()
  }
  await fold()
  await tallies.flush()
  return { days, corrections, outages, read: reports.read, zone: () => zone, now: store.now }
}
