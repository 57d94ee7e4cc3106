import type { Kysely } from 'kysely'
import { decodeReportNote } from '../../core/store/codec.ts'
import type { Session } from '../../core/store/engine.ts'
import { loadSetting } from '../../core/store/settings.ts'
import { statement } from '../../core/store/statement.ts'
import type { Tables } from '../../core/store/tables.ts'
import type { FoundNote, Outage, Proof } from './report.rules.ts'

const oldestNotes = statement<{ limit: number }>()((db, p) =>
  db.selectFrom('report_note').select(['id', 'note']).orderBy('id').limit(p.limit),
)
const removeNotes = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('report_note').where('id', 'in', oneOf(p.ids)).returningAll(),
)
const anyNote = statement()((db) => db.selectFrom('report_note').select('id').limit(1))

type Row = { readonly name: string; readonly id: number; readonly day: number; readonly parcelId: number; readonly untilMs: number | null }

const insertEvidence = statement<Row>()((db, p) =>
  db
    .insertInto('report_evidence')
    .values({ name: p.name, id: p.id, day: p.day, parcel_id: p.parcelId, until_ms: p.untilMs })
    .onConflict((conflict) => conflict.columns(['name', 'id']).doNothing())
    .returning('id'),
)
const removeLost = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('report_evidence').where('name', '=', 'lost').where('id', 'in', oneOf(p.ids)).returning(['id', 'day']),
)
const existing = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('parcel').select('id').where('id', 'in', oneOf(p.ids)),
)

type Days = { readonly name: string; readonly from: number; readonly to: number }

const ofDays = (db: Kysely<Tables>, p: Days) =>
  db
    .selectFrom('report_evidence')
    .where('report_evidence.name', '=', p.name)
    .where('report_evidence.day', '>=', p.from)
    .where('report_evidence.day', '<', p.to)
const kept = statement<Days>()((db, p) => ofDays(db, p).select(({ fn }) => fn.countAll<number>().as('count')))
const ofParcels = statement<Days & { readonly limit: number }>()((db, p) =>
  ofDays(db, p).select('parcel_id').orderBy('day').orderBy('id').limit(p.limit),
)
/** There are few rows: those of a day are bounded. */
const ofPushes = statement<Days>()((db, p) =>
  ofDays(db, p)
    .leftJoin('inbox', 'inbox.id', 'report_evidence.id')
    .select(['report_evidence.id', 'inbox.received_at_ms'])
    .orderBy('report_evidence.day')
    .orderBy('report_evidence.id'),
)
const outages = statement<{ beforeMs: number; limit: number }>()((db, p) =>
  db
    .selectFrom('report_evidence')
    .select(['id', 'until_ms'])
    .where('name', '=', 'outage')
    .where('id', '<', p.beforeMs)
    .orderBy('id', 'desc')
    .limit(p.limit),
)

/** The setting with the first day that the report counts. */
export const COUNTED_FROM = 'report-from'

/** Null: none was counted yet. */
export function readCountedFrom(stored: Uint8Array | null): number | null {
  return stored === null ? null : Number(Buffer.from(stored).toString())
}

export async function loadCountedFrom(session: Session): Promise<number | null> {
  return readCountedFrom(await loadSetting(session, COUNTED_FROM))
}

/** Whether there are notes that are not part of the report yet. */
export async function hasNotes(session: Session): Promise<boolean> {
  return (await session.all(anyNote, {})).length > 0
}

/** A transaction takes at most so many notes, and stops after the one that reaches so many characters, so that pushes wait for a few milliseconds. */
const NOTES_AT_ONCE = 200
const CHARS_AT_ONCE = 24_000

/** Removes the oldest notes and returns them. `isLast`: no more were there. */
export async function takeNotes(session: Session): Promise<{ readonly notes: readonly FoundNote[]; readonly isLast: boolean }> {
  const oldest = await session.all(oldestNotes, { limit: NOTES_AT_ONCE })
  let chars = 0
  const taken = oldest.filter(({ note }) => {
    const hasRoom = chars < CHARS_AT_ONCE
    chars += note.length
    return hasRoom
  })
  const isLast = oldest.length < NOTES_AT_ONCE && taken.length === oldest.length
  if (taken.length === 0) return { notes: [], isLast }
  const rows = await session.all(removeNotes, { ids: taken.map(({ id }) => id) })
  const inOrder = rows.toSorted((a, b) => a.id - b.id)
  return { notes: inOrder.flatMap(({ at_ms: atMs, note }) => ({ atMs, note: decodeReportNote(note) })), isLast }
}

/** Stores proofs, and returns those that were not known before. If its parcel is gone, a proof is not stored, and counts as new. */
export async function addProofs(session: Session, proofs: readonly Proof[]): Promise<readonly Proof[]> {
  const ids = [...new Set(proofs.flatMap(({ parcelId }) => (parcelId > 0 ? [parcelId] : [])))]
  const living = new Set(ids.length === 0 ? [] : (await session.all(existing, { ids })).map(({ id }) => id))
  const isNew = await Promise.all(
    proofs.map(async ({ name, id, day, parcelId }) => {
      if (parcelId > 0 && !living.has(parcelId)) return true
      return (await session.all(insertEvidence, { name, id, day, parcelId, untilMs: null })).length > 0
    }),
  )
  return proofs.filter((_, at) => isNew[at])
}

export async function addOutage(
  session: Session,
  { fromMs, untilMs, day }: { fromMs: number; untilMs: number; day: number },
): Promise<void> {
  await session.all(insertEvidence, { name: 'outage', id: fromMs, day, parcelId: 0, untilMs })
}

/** Takes entries from those that count as lost. Returns the days on which they were counted, by their sequences. */
export async function takeLost(session: Session, sequences: readonly number[]): Promise<ReadonlyMap<number, number>> {
  if (sequences.length === 0) return new Map()
  return new Map((await session.all(removeLost, { ids: sequences })).map(({ id, day }) => [id, day]))
}

export async function countProofs(session: Session, days: Days): Promise<number> {
  const [row] = await session.all(kept, days)
  return row?.count ?? 0
}

export function listParcelProofs(session: Session, request: Days & { readonly limit: number }) {
  return session.all(ofParcels, request)
}

/** `isGone`: the push is no longer stored. */
export async function listPushProofs(session: Session, days: Days): Promise<readonly { readonly id: number; readonly isGone: boolean }[]> {
  return (await session.all(ofPushes, days)).map((row) => ({ id: row.id, isGone: row.received_at_ms === null }))
}

/** Lists the outages that began before a time, the newest first. */
export async function listOutages(session: Session, beforeMs: number, limit: number): Promise<readonly Outage[]> {
  return (await session.all(outages, { beforeMs, limit })).map(({ id, until_ms: untilMs }) => ({ fromMs: id, untilMs }))
}
