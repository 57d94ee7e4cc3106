import { describe, expect, test } from 'vitest'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { DAY_MS, NOON } from '../../../support/runner/constants.ts'
import { drawWith, seeded } from '../../../support/runner/seeded.ts'
import { openAgingStore } from '../../../support/store/aging-store.ts'
import { engines } from '../../../support/store/engines.ts'
import { storedRows } from '../../../support/store/stored-rows.ts'

interface PushRow {
  readonly id: number
  readonly received_at_ms: number
  readonly state: number
  readonly parcel_id: number
  readonly kept: number
}
interface DeliveryRow {
  readonly id: number
  readonly state: number
  readonly queued_at_ms: number
  readonly settled_at_ms: number | null
  readonly parcel_id: number
  readonly inbox_id: number | null
}

const QUARANTINED = 1
const ENDED_FROM = 2
const REPLAYABLE_FROM = 3

/** Reads the rows of the tables, by id. The checks use nothing else. */
async function rowsOf(path: string) {
  const pushes = await storedRows<PushRow>(
    path,
    'select id, received_at_ms, state, parcel_id, case when body is null then 0 else 1 end as kept from inbox',
  )
  const deliveries = await storedRows<DeliveryRow>(path, 'select id, state, queued_at_ms, settled_at_ms, parcel_id, inbox_id from delivery')
  const parcels = await storedRows<{ readonly id: number; readonly touched: number }>(
    path,
    'select id, coalesce(last_seen_at_ms, activated_at_ms) as touched from parcel',
  )
  const byId = <Row extends { readonly id: number }>(rows: readonly Row[]) => new Map(rows.map((row) => [Number(row.id), row]))
  return { pushes: byId(pushes), deliveries: byId(deliveries), parcels: byId(parcels) }
}

type Rows = Awaited<ReturnType<typeof rowsOf>>

/** Lists the errors of a pass by the rules of retention, with the days in `SHORT`. */
function wrongs(before: Rows, after: Rows, nowMs: number): readonly string[] {
  const within = (atMs: number | null, days: number) => Number(atMs) >= nowMs - days * DAY_MS
  const newest = Math.max(0, ...before.deliveries.keys())
  const owedFor = (days: number) =>
    [...before.deliveries.values()].filter(({ state, queued_at_ms: at }) => state < ENDED_FROM && within(at, days))
  const owed = owedFor(20)
  const replayed = (rows: Rows) =>
    new Set([...rows.deliveries.values()].filter(({ state }) => state >= REPLAYABLE_FROM).map(({ inbox_id: id }) => Number(id)))
  const [mayBeSent, stillMayBeSent] = [replayed(before), replayed(after)]
  const parcelsOf = (rows: readonly DeliveryRow[]) => new Set(rows.map(({ parcel_id: id }) => Number(id)))
  // The relay marks lived time at its passes, so it may give something up a pass later than by the wall clock.
  const [awaited, mayBeAwaited] = [parcelsOf(owed), parcelsOf(owedFor(22))]
  return [
    ...owed.flatMap(({ id, inbox_id: inboxId }) => {
      const isThere = (after.deliveries.get(Number(id))?.state ?? ENDED_FROM) < ENDED_FROM
      const hasBytes = inboxId === null || Number(after.pushes.get(Number(inboxId))?.kept) === 1
      return isThere && hasBytes ? [] : [`delivery ${id} is owed`]
    }),
    ...[...before.pushes.values()].flatMap((push) => {
      const isOpen = push.state === QUARANTINED && within(push.received_at_ms, 20)
      const isYoung = within(push.received_at_ms, 6)
      const isKept = Number(after.pushes.get(Number(push.id))?.kept) === 1
      const id = Number(push.id)
      if ((isOpen || isYoung || stillMayBeSent.has(id)) && Number(push.kept) === 1 && !isKept) return [`push ${id} is gone too early`]
      const isHeld = push.state === QUARANTINED && within(push.received_at_ms, 22)
      const isDue = isHeld || isYoung || mayBeSent.has(id) || stillMayBeSent.has(id) || mayBeAwaited.has(Number(push.parcel_id))
      return isKept && !isDue ? [`push ${id} keeps its bytes`] : []
    }),
    ...[...before.deliveries.values()].flatMap(({ id, state, settled_at_ms: at }) => {
      if (state < ENDED_FROM) return []
      const isThere = after.deliveries.has(Number(id))
      if (within(at, 3)) return isThere ? [] : [`delivery ${id} is gone too early`]
      return isThere && Number(id) !== newest ? [`delivery ${id} is still there`] : []
    }),
    ...[...before.parcels.values()].flatMap(({ id, touched }) => {
      if (after.parcels.has(Number(id))) return []
      return awaited.has(Number(id)) || within(touched, 10) ? [`parcel ${id} is gone too early`] : []
    }),
  ]
}

describe.each(engines)('retention on $name', (engine) => {
  test.each([1, 2])('no pass removes too much or too little, whatever happens in any order (seed %i)', async (seed) => {
    const { path, writes, report, pushBytes, prune, pass, inboxIds } = await openAgingStore(engine)
    const { below, pick } = drawWith(seeded(seed))
    const { take } = await addEndpoint(writes, NOON)
    await addEndpoint(writes, NOON, { name: 'off', enabled: false, filters: { ...ANY, status: ['DeliveryStarted'] } })
    const ids = Array.from({ length: 12 }, (_, at) => String(73_000_000 + at))
    let gone = 0
    for (let day = 0; day < 45; day++) {
      for (let times = below(4); times >= 0; times--) {
        const id = pick(ids)
        const what = below(10)
        if (what < 6) await report(id, { status: pick(['Created', 'DeliveryStarted', 'DeliverySucceeded']) })
        else if (what < 7) await pushBytes(Buffer.from(`no event ${day} ${times}`))
        else if (what < 8) await writes.unwatch({ identifier: id })
        else if (what < 9) await take()
        else await writes.dismissPush({ inboxId: pick([0, ...(await inboxIds())]) })
      }
      pass(DAY_MS)
      // Half of the time no round is run, as if the relay were busy.
      if (below(2) === 0) await take()
      const nowMs = pass(1)
      const before = await rowsOf(path)
      await prune()
      const after = await rowsOf(path)
      expect([day, wrongs(before, after, nowMs)]).toEqual([day, []])
      gone += before.parcels.size - after.parcels.size
    }
    expect(gone).toBeGreaterThan(0)
  })
})

const ANY = { status: null, detailedStatus: null, distributionType: null, label: null, displayToConsumer: null }
