import { EVIDENCE_NAMES, type Noted, summarizeNotes } from '../../domain/history/report-notes.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

const insertNote = statement<{ atMs: number; note: string }>()((db, p) =>
  db.insertInto('report_note').values({ at_ms: p.atMs, note: p.note }),
)

/**
 * Stores what a transaction adds to the carrier's report, in the same transaction, so that nothing is counted twice or not at all. Each transaction
 * inserts a row, so none waits for another; `foldReport` adds the rows to the days of the report.
 */
export function addReportNote(session: Session, noted: readonly Noted[], atMs: number): void {
  if (noted.length > 0) session.enqueueWrite(insertNote, { atMs, note: JSON.stringify(summarizeNotes(noted)) })
}

const removeOfParcels = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('report_evidence').where('parcel_id', 'in', oneOf(p.ids)).where('parcel_id', '>', 0),
)
const moveOfParcels = statement<{ ids: readonly number[]; into: number }>()((db, p, { oneOf }) =>
  db.updateTable('report_evidence').set({ parcel_id: p.into }).where('parcel_id', 'in', oneOf(p.ids)).where('parcel_id', '>', 0),
)

/** Removes the evidence about parcels that are deleted. */
export function removeReportEvidence(session: Session, parcelIds: readonly number[]): void {
  session.enqueueWrite(removeOfParcels, { ids: parcelIds })
}

/** Gives the evidence about parcels to the parcel that they are joined into. */
export async function moveReportEvidence(session: Session, from: readonly number[], into: number): Promise<void> {
  await session.run(moveOfParcels, { ids: from, into })
}

const old = statement<{ names: readonly string[]; beforeMs: number; limit: number }>()((db, p, { oneOfTexts }) =>
  db
    .selectFrom('report_evidence')
    .select(['name', 'id'])
    .where('name', 'in', oneOfTexts(p.names))
    .where('day', '<', p.beforeMs)
    .limit(p.limit),
)
const remove = statement<{ name: string; id: number }>()((db, p) =>
  db.deleteFrom('report_evidence').where('name', '=', p.name).where('id', '=', p.id),
)

/** Deletes up to `limit` rows of evidence of days before `beforeMs`. Returns how many it deleted. */
export async function pruneReportEvidence(session: Session, beforeMs: number, limit: number): Promise<number> {
  const rows = await session.all(old, { names: EVIDENCE_NAMES, beforeMs, limit })
  for (const row of rows) session.enqueueWrite(remove, row)
  return rows.length
}
