import { sql } from 'kysely'
import { answerId, type KeptAnswer, keepAnswers } from '../../domain/history/pull-response.ts'
import { decodeAnswer, encodeAnswerHead } from '../codec.ts'
import type { Session } from '../engine.ts'
import { rowOf, statement } from '../statement.ts'
import { COLUMNS, type RowOf } from '../tables.ts'

const FACTS = ['language', 'digest', 'asked_at_ms', 'entry_count', 'is_flawed', 'head'] as const

const ofParcel = statement<{ parcelId: number }>()((db, p) => db.selectFrom('answer').select(FACTS).where('parcel_id', '=', p.parcelId))

const clearOrder = statement<{ parcelId: number }>()((db, p) =>
  db.updateTable('answer').set({ decides_order: 0 }).where('parcel_id', '=', p.parcelId).where('decides_order', '=', 1),
)

const { listed: _listed, ...ANSWER } = COLUMNS.answer
const upsert = statement<RowOf<typeof ANSWER>>()((db, p, { greatest }) =>
  db
    .insertInto('answer')
    .values({ ...rowOf(ANSWER, p), listed: null })
    .onConflict((conflict) =>
      conflict.columns(['parcel_id', 'language', 'digest']).doUpdateSet((row) => ({
        asked_at_ms: greatest(row.ref('answer.asked_at_ms'), row.ref('excluded.asked_at_ms')),
        decides_order: greatest(row.ref('answer.decides_order'), row.ref('excluded.decides_order')),
        body: row.ref('excluded.body'),
      })),
    ),
)

const deleteOne = statement<{ parcelId: number; language: string; digest: Uint8Array }>()((db, p) =>
  db.deleteFrom('answer').where('parcel_id', '=', p.parcelId).where('language', '=', p.language).where('digest', '=', p.digest),
)

const ofParcels = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('answer')
    .select(['parcel_id', ...FACTS])
    .where('parcel_id', 'in', oneOf(p.ids))
    .orderBy('parcel_id'),
)
const keepOnly = statement<{ ids: readonly number[]; kept: readonly string[] }>()((db, p, { oneOf, oneOfTexts, hex }) =>
  db
    .deleteFrom('answer')
    .where('parcel_id', 'in', oneOf(p.ids))
    .where(sql<string>`parcel_id || '/' || language || '/' || ${hex(sql.ref('digest'))}`, 'not in', oneOfTexts(p.kept)),
)
const moveAll = statement<{ ids: readonly number[]; into: number }>()((db, p, { oneOf }) =>
  db.updateTable('answer').set({ parcel_id: p.into, decides_order: 0 }).where('parcel_id', 'in', oneOf(p.ids)),
)
const amend = statement<{ parcelId: number; language: string; digest: Uint8Array; askedAtMs: number; decidesOrder: number }>()((db, p) =>
  db
    .updateTable('answer')
    .set({ asked_at_ms: p.askedAtMs, decides_order: p.decidesOrder })
    .where('parcel_id', '=', p.parcelId)
    .where('language', '=', p.language)
    .where('digest', '=', p.digest),
)

export async function loadAnswers(session: Session, parcelId: number): Promise<readonly KeptAnswer[]> {
  return (await session.all(ofParcel, { parcelId })).map(decodeAnswer)
}

export interface AnswerToSave {
  readonly parcelId: number
  readonly answer: KeptAnswer
  readonly body: Uint8Array | null
  readonly decidesOrder: boolean
}

export function saveAnswer(session: Session, { parcelId, answer, body, decidesOrder }: AnswerToSave): void {
  const { language, digest, askedAtMs, entryCount, flawed, ...head } = answer
  if (decidesOrder) session.enqueueWrite(clearOrder, { parcelId })
  session.enqueueWrite(upsert, {
    parcel_id: parcelId,
    language,
    digest: Buffer.from(digest, 'hex'),
    asked_at_ms: askedAtMs,
    entry_count: entryCount,
    is_flawed: flawed ? 1 : 0,
    decides_order: decidesOrder ? 1 : 0,
    head: encodeAnswerHead(head),
    body,
  })
}

/** Loads the answers of several parcels, by parcel id in ascending order. A parcel without answers is absent. */
export async function loadAnswersOf(session: Session, parcelIds: readonly number[]): Promise<AnswersByParcel> {
  if (parcelIds.length === 0) return new Map()
  const byParcel = Map.groupBy(await session.all(ofParcels, { ids: parcelIds }), (row) => row.parcel_id)
  return new Map([...byParcel].map(([parcelId, rows]) => [parcelId, rows.map(decodeAnswer)]))
}

type AnswersByParcel = ReadonlyMap<number, readonly KeptAnswer[]>

/** Moves the answers of several parcels to one of them (`into`), and deletes the answers that exceed the limit for one parcel. */
export async function moveAnswers(session: Session, answers: AnswersByParcel, into: number): Promise<void> {
  const ids = [...answers.keys()]
  if (ids.every((parcelId) => parcelId === into)) return
  const held = [...answers].flatMap(([parcelId, own]) => own.map((answer) => ({ parcelId, answer })))
  const { kept, order } = keepAnswers(held.map(({ answer }) => answer))
  // Of several equal answers one that decided an order stays, because its row may have what is left of its bytes, else the first one. Reverse the
  // list, because a later entry of a map overwrites an earlier one.
  const orders = new Set([...answers.values()].map((own) => keepAnswers(own).order))
  const byPreference = held.toSorted((a, b) => Number(orders.has(b.answer)) - Number(orders.has(a.answer)))
  const rows = new Map(byPreference.toReversed().map((one) => [answerId(one.answer), one]))
  if (kept.length < held.length) {
    const keys = kept.map((answer) => `${rows.get(answerId(answer))?.parcelId}/${answerId(answer)}`)
    await session.run(keepOnly, { ids, kept: keys })
  }
  await session.run(moveAll, { ids, into })
  for (const answer of kept) {
    const { askedAtMs } = answer
    const decidesOrder = answer === order
    if (!decidesOrder && rows.get(answerId(answer))?.answer === answer) continue
    session.enqueueWrite(amend, { ...keyOf(into, answer), askedAtMs, decidesOrder: decidesOrder ? 1 : 0 })
  }
}

export function dropAnswers(session: Session, parcelId: number, answers: readonly KeptAnswer[]): void {
  for (const answer of answers) session.enqueueWrite(deleteOne, keyOf(parcelId, answer))
}

function keyOf(parcelId: number, { language, digest }: KeptAnswer) {
  return { parcelId, language, digest: Buffer.from(digest, 'hex') }
}
