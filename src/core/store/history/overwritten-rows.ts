import { sql } from 'kysely'
import type { OverwrittenWrite } from '../../domain/history/change-set.ts'
import { OVERWRITTEN_MAX } from '../../domain/history/overwritten.ts'
import { decodeSetting } from '../codec.ts'
import type { Session } from '../engine.ts'
import { saveSetting } from '../settings.ts'
import { statement } from '../statement.ts'
import type { WriteTx } from '../write-store.ts'

const insertOne = statement<ReturnType<typeof overwrittenRow>>()((db, p) =>
  db
    .insertInto('overwritten')
    .columns(['parcel_id', 'nth', 'sequence', 'learnt_at_ms', 'value'])
    .expression((of) =>
      of
        .selectFrom('overwritten')
        .select((row) => [
          sql<number>`${p.parcelId}`.as('parcel_id'),
          sql<number>`coalesce(${row.fn.max('nth')}, 0) + 1`.as('nth'),
          sql<number>`${p.sequence}`.as('sequence'),
          sql<number>`${p.learntAtMs}`.as('learnt_at_ms'),
          sql<string>`${p.value}`.as('value'),
        ])
        .where('parcel_id', '=', p.parcelId),
    ),
)
/** The values of a parcel are numbered without gaps, so the lowest number of a parcel tells whether any were deleted. */
const deleteOldest = statement<{ parcelId: number }>()((db, p) =>
  db
    .deleteFrom('overwritten')
    .where('parcel_id', '=', p.parcelId)
    .where('nth', '<=', (of) =>
      of
        .selectFrom('overwritten as last')
        .select((row) => sql<number>`${row.fn.max('last.nth')} - ${sql.lit(OVERWRITTEN_MAX)}`.as('nth'))
        .where('last.parcel_id', '=', p.parcelId),
    ),
)
const removeAll = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('overwritten').where('parcel_id', 'in', oneOf(p.ids)),
)

export function overwrittenRow({ parcelId, sequence, learntAtMs, value }: OverwrittenWrite) {
  return { parcelId, sequence, learntAtMs, value }
}

/** Keeps what a change has overwritten of a parcel. A parcel keeps the last `OVERWRITTEN_MAX`. */
export function saveOverwritten(session: Session, overwritten: OverwrittenWrite): void {
  session.enqueueWrite(insertOne, overwrittenRow(overwritten))
  dropOldest(session, overwritten.parcelId)
}

export function dropOldest(session: Session, parcelId: number): void {
  session.enqueueWrite(deleteOldest, { parcelId })
}

/** The setting that says when the store began to keep what changes overwrite, as a mark; absent: it always has. */
export const OVERWRITTEN_SINCE = 'overwritten-since'
/** The setting with the marks of a clock that was put back. */
export const CLOCK_MARKS = 'clock-marks'
const MARKS_MAX = 100

/** At a sequence the clock had reached a time, epoch milliseconds. */
type Mark = readonly [sequence: number, atMs: number]

/** Notes which time the clock had reached when it was put back, so that what is learnt later counts as later. */
export async function noteClockMark(tx: Session & Pick<WriteTx, 'loadSetting'>, mark: Mark): Promise<void> {
  const marks = decodeMarks(await tx.loadSetting(CLOCK_MARKS))
  await saveSetting(tx, CLOCK_MARKS, Buffer.from(JSON.stringify([...marks, mark].slice(-MARKS_MAX))))
}

export function decodeMarks(stored: Uint8Array | null): readonly Mark[] {
  return (stored === null ? null : decodeSetting<readonly Mark[]>(stored)) ?? []
}

export function removeOverwritten(session: Session, parcelIds: readonly number[]): void {
  session.enqueueWrite(removeAll, { ids: parcelIds })
}
