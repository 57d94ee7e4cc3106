import type { KeptAnswer } from '../domain/parcel-record.ts'
import { betterOrderAnswer } from '../domain/parcel-record.ts'
import { decodeAnswer, encodeAnswerHead } from './codec.ts'
import type { Session } from './engine.ts'
import { statement } from './statement.ts'

const COLUMNS = ['language', 'digest', 'asked_at_ms', 'entry_count', 'is_flawed', 'head'] as const

const ofParcel = statement<{ parcelId: number }>()((db, p) => db.selectFrom('answer').select(COLUMNS).where('parcel_id', '=', p.parcelId))

const orderAnswer = statement<{ parcelId: number }>()((db, p) =>
  db.selectFrom('answer').select(COLUMNS).where('parcel_id', '=', p.parcelId).where('decides_order', '=', 1),
)

const clearOrder = statement<{ parcelId: number }>()((db, p) =>
  db.updateTable('answer').set({ decides_order: 0 }).where('parcel_id', '=', p.parcelId).where('decides_order', '=', 1),
)

const upsert = statement<{
  parcel_id: number
  language: string
  digest: Uint8Array
  asked_at_ms: number
  entry_count: number
  is_flawed: number
  decides_order: number
  head: string
  body: Uint8Array
}>()((db, p) =>
  db
    .insertInto('answer')
    .values({
      parcel_id: p.parcel_id,
      language: p.language,
      digest: p.digest,
      asked_at_ms: p.asked_at_ms,
      entry_count: p.entry_count,
      is_flawed: p.is_flawed,
      decides_order: p.decides_order,
      head: p.head,
      body: p.body,
    })
    .onConflict((conflict) =>
      conflict.columns(['parcel_id', 'language', 'digest']).doUpdateSet((row) => ({
        asked_at_ms: row.fn<number>('max', [row.ref('answer.asked_at_ms'), row.ref('excluded.asked_at_ms')]),
        decides_order: row.fn<number>('max', [row.ref('answer.decides_order'), row.ref('excluded.decides_order')]),
        body: row.ref('excluded.body'),
      })),
    ),
)

const ofJoined = statement<{ parcelId: number }>()((db, p) => db.selectFrom('answer').selectAll().where('parcel_id', '=', p.parcelId))
const deleteOfParcel = statement<{ parcelId: number }>()((db, p) => db.deleteFrom('answer').where('parcel_id', '=', p.parcelId))

export async function loadAnswers(session: Session, parcelId: number): Promise<readonly KeptAnswer[]> {
  return (await session.all(ofParcel, { parcelId })).map(decodeAnswer)
}

export async function loadOrderAnswer(session: Session, parcelId: number): Promise<KeptAnswer | null> {
  const [row] = await session.all(orderAnswer, { parcelId })
  return row === undefined ? null : decodeAnswer(row)
}

export interface AnswerToSave {
  readonly parcelId: number
  readonly answer: KeptAnswer
  readonly body: Uint8Array
  readonly decidesOrder: boolean
}

export async function saveAnswer(session: Session, { parcelId, answer, body, decidesOrder }: AnswerToSave): Promise<void> {
  if (decidesOrder) await session.run(clearOrder, { parcelId })
  await session.run(upsert, {
    parcel_id: parcelId,
    language: answer.language,
    digest: Buffer.from(answer.digest, 'hex'),
    asked_at_ms: answer.askedAtMs,
    entry_count: answer.entryCount,
    is_flawed: answer.flawed ? 1 : 0,
    decides_order: decidesOrder ? 1 : 0,
    head: encodeAnswerHead(answer),
    body,
  })
}

/** Moves the answers of a parcel that was joined away; of both order answers the better goes on deciding. */
export async function moveAnswers(session: Session, from: number, into: number): Promise<void> {
  for (const row of await session.all(ofJoined, { parcelId: from })) {
    const answer = decodeAnswer(row)
    const decidesOrder = row.decides_order === 1 && betterOrderAnswer(await loadOrderAnswer(session, into), answer) === answer
    await saveAnswer(session, { parcelId: into, answer, body: row.body ?? new Uint8Array(), decidesOrder })
  }
  await session.run(deleteOfParcel, { parcelId: from })
}
