import { sql } from 'kysely'
import { DELIVERY_STATE } from '../codec.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

/** See `shiftSchedule` of `WriteSide`. */
export interface ScheduleShift {
  readonly byMs: number
  readonly sinceMs: number
  readonly nowMs: number
  readonly afterParcelId: number
  readonly limit: number
}

/** The parcel id of operator events. */
const NO_PARCEL = 0

const polledFor = statement<{ afterParcelId: number; limit: number }>()((db, p) =>
  db.selectFrom('parcel').select('id').where('id', '>', p.afterParcelId).orderBy('id').limit(p.limit),
)
const ended = statement<{ afterParcelId: number; lastId: number; nowMs: number }>()((db, p, { unindexed }) =>
  db
    .selectFrom('parcel')
    .select('id')
    .where('id', '>', p.afterParcelId)
    .where('id', '<=', p.lastId)
    .where((row) => row(unindexed(row.ref('next_poll_at_ms')), 'is', null))
    .where((row) =>
      row.or([
        row('stopped', 'in', [sql.lit('stale'), sql.lit('delivered')]),
        row.and([row('stopped', '=', sql.lit('unknown')), row('checked_at_ms', '>', p.nowMs)]),
      ]),
    ),
)
const shift = statement<{ afterParcelId: number; lastId: number; byMs: number; sinceMs: number; nowMs: number }>()((db, p, { least }) =>
  db
    .updateTable('parcel')
    .set((row) => ({
      // A parcel that was polled since the clock was put back keeps its next poll. A poll before that may also have a time in this span. Then the
      // next poll stays too, but it still comes within one interval.
      next_poll_at_ms: row
        .case()
        .when(row.between('checked_at_ms', p.sinceMs, p.nowMs))
        .then(row.ref('next_poll_at_ms'))
        .else(row('next_poll_at_ms', '-', p.byMs))
        .end(),
      // If the time of a past event were in the future, everything that is computed from it would be delayed (DOMAIN 6.1).
      watched_at_ms: least(row.ref('watched_at_ms'), row.val(p.nowMs)),
      last_seen_at_ms: least(row.ref('last_seen_at_ms'), row.val(p.nowMs)),
      checked_at_ms: least(row.ref('checked_at_ms'), row.val(p.nowMs)),
      activated_at_ms: least(row.ref('activated_at_ms'), row.val(p.nowMs)),
    }))
    .where('id', '>', p.afterParcelId)
    .where('id', '<=', p.lastId),
)

/** If the latest entry of a parcel has a time in the future, makes the age of that entry count from now. */
const countEntries = statement<{ afterParcelId: number; lastId: number; nowMs: number }>()((db, p) =>
  db
    .updateTable('parcel')
    .set({ latest_learnt_at_ms: p.nowMs })
    .where('id', '>', p.afterParcelId)
    .where('id', '<=', p.lastId)
    .where('latest_at_ms', '>', p.nowMs)
    .where((row) => row.or([row('latest_learnt_at_ms', 'is', null), row('latest_learnt_at_ms', '>', p.nowMs)])),
)

const refusals = statement<{ afterParcelId: number; lastId: number; nowMs: number }>()((db, p) =>
  db
    .updateTable('identifier')
    .set({ refused_at_ms: p.nowMs })
    .where('parcel_id', '>', p.afterParcelId)
    .where('parcel_id', '<=', p.lastId)
    .where('refused_at_ms', '>', p.nowMs),
)

const awaitPushes = statement<{ afterParcelId: number; lastId: number; byMs: number; sinceMs: number; nowMs: number }>()(
  (db, p, { least }) =>
    db
      .updateTable('expected_push')
      .set((row) => ({
        due_at_ms: row
          .case()
          .when(row.between('found_at_ms', p.sinceMs, p.nowMs))
          .then(row.ref('due_at_ms'))
          .else(row('due_at_ms', '-', p.byMs))
          .end(),
        found_at_ms: least(row.ref('found_at_ms'), row.val(p.nowMs)),
        event_at_ms: least(row.ref('event_at_ms'), row.val(p.nowMs)),
      }))
      .where('parcel_id', '>', p.afterParcelId)
      .where('parcel_id', '<=', p.lastId),
)

const waitsFor = statement<{ above: number; lastId: number; byMs: number; nowMs: number }>()((db, p, { anyEndpoint, least }) =>
  db
    .updateTable('delivery')
    .set((row) => ({
      next_attempt_at_ms: row('next_attempt_at_ms', '-', p.byMs),
      first_failed_at_ms: least(row.ref('first_failed_at_ms'), row.val(p.nowMs)),
    }))
    .where('endpoint_id', 'in', anyEndpoint)
    .where('parcel_id', '>', p.above)
    .where('parcel_id', '<=', p.lastId)
    // A delivery that waits behind another keeps the retry time of its last failure, so shift that too.
    .where((row) =>
      row.or([row('state', '=', DELIVERY_STATE.due), row.and([row('state', '=', DELIVERY_STATE.behind), row('attempts', '>', 0)])]),
    ),
)

export async function listEndedByClock(session: Session, { afterParcelId, limit, nowMs }: ScheduleShift): Promise<readonly number[]> {
  const lastId = (await session.all(polledFor, { afterParcelId, limit })).at(-1)?.id
  return lastId === undefined ? [] : (await session.all(ended, { afterParcelId, lastId, nowMs })).map(({ id }) => id)
}

/** Shifts the polls and deliveries of the next parcels after the clock was put back. Returns the last parcel id; null: there are no more. */
export async function shiftSchedule(session: Session, request: ScheduleShift): Promise<number | null> {
  const { byMs, sinceMs, nowMs, afterParcelId, limit } = request
  const ids = await session.all(polledFor, { afterParcelId, limit })
  const lastId = ids.at(-1)?.id ?? null
  // Operator events belong to no parcel, so they are shifted once.
  if (afterParcelId === 0) await session.run(waitsFor, { above: NO_PARCEL - 1, lastId: NO_PARCEL, byMs, nowMs })
  if (lastId !== null) {
    await session.run(shift, { afterParcelId, lastId, byMs, sinceMs, nowMs })
    await session.run(countEntries, { afterParcelId, lastId, nowMs })
    await session.run(refusals, { afterParcelId, lastId, nowMs })
    await session.run(awaitPushes, { afterParcelId, lastId, byMs, sinceMs, nowMs })
    await session.run(waitsFor, { above: afterParcelId, lastId, byMs, nowMs })
  }
  return lastId
}
