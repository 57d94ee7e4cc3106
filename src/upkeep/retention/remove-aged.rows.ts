import { sql } from 'kysely'
import { CERTIFICATE_SUBJECTS } from '../../console/problems/trouble.ts'
import { listedIn } from '../../core/domain/history/pull-response.ts'
import { pruneActions, pruneOperatorEvents, pruneTroubles } from '../../core/store/admin/operations.ts'
import { removeReportEvidence } from '../../core/store/admin/report-note-rows.ts'
import { DELIVERY_STATE, decodeJoinOrigin, decodeSetting, encodeListed } from '../../core/store/codec.ts'
import { PRUNED_TO } from '../../core/store/delivery/feed.ts'
import type { Session } from '../../core/store/engine.ts'
import { contentsUsedBy } from '../../core/store/history/contents.ts'
import { removeContexts } from '../../core/store/history/order-contexts.ts'
import { removeOverwritten } from '../../core/store/history/overwritten-rows.ts'
import { deleteParcels, loadIdentifiersOf } from '../../core/store/history/parcels.ts'
import { removeWatched } from '../../core/store/history/watched.ts'
import { INBOX_STATES } from '../../core/store/ingest/inbox-rows.ts'
import { loadSetting, saveSetting } from '../../core/store/settings.ts'
import { statement } from '../../core/store/statement.ts'
import type { DroppedParcels, WriteTx } from '../../core/store/write-store.ts'
import { type AgedAnswer, createAgedReads } from './aged-rows.rows.ts'
import type { AgeMark, RetentionState } from './retention.rules.ts'

/** The condition on the state leaves out a delivery that was queued again after it was found. */
const removeEnded = statement<{ ids: readonly number[] }>()((db, p, { oneOf, unindexed }) =>
  db
    .deleteFrom('delivery')
    .where('id', 'in', oneOf(p.ids))
    .where((row) => row(unindexed(row.ref('state')), '>=', DELIVERY_STATE.delivered))
    .returning('id'),
)
const removeAttempts = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('attempt').where('delivery_id', 'in', oneOf(p.ids)),
)
/** There are few rows: a group of failures for each of the last answers of an endpoint. So each looks its delivery up, and no join reads all deliveries. */
const removeFailures = statement()((db) =>
  db
    .deleteFrom('failure')
    .where(
      (of) => of.selectFrom('delivery').select('delivery.id').whereRef('delivery.id', '=', 'failure.delivery_id').limit(sql.lit(1)),
      'is',
      null,
    ),
)
const clear = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.updateTable('inbox').set({ body: null }).where('id', 'in', oneOf(p.ids)),
)
/**
 * Dismisses pushes, except those that were reprocessed since they were found. The state is in a `case` because, with a `where` on the state,
 * the planner might read all quarantined pushes instead of these few.
 */
const close = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .updateTable('inbox')
    .set((row) => ({
      state: row.case().when('state', '=', INBOX_STATES.quarantined).then(INBOX_STATES.dismissed).else(row.ref('state')).end(),
    }))
    .where('id', 'in', oneOf(p.ids)),
)
type AnswerKey = Pick<AgedAnswer, 'parcelId' | 'language' | 'digest'>

const bodyOf = statement<AnswerKey>()((db, p) =>
  db
    .selectFrom('answer')
    .select('body')
    .where('parcel_id', '=', p.parcelId)
    .where('language', '=', p.language)
    .where('digest', '=', p.digest),
)
const clearAnswer = statement<AnswerKey & { askedAtMs: number; listed: Uint8Array | null }>()((db, p) =>
  db
    .updateTable('answer')
    .set({ body: null, listed: p.listed })
    .where('parcel_id', '=', p.parcelId)
    .where('language', '=', p.language)
    .where('digest', '=', p.digest)
    .where('asked_at_ms', '<=', p.askedAtMs),
)
/**
 * Removes pushes without a parcel. A push that was reprocessed since it was found has a parcel, and stays. The `case` keeps the planner from
 * using the index by parcel, so that it finds the rows by their ids.
 */
const removePushes = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('inbox').where('id', 'in', oneOf(p.ids)).where(sql<boolean>`(case when parcel_id = 0 then 1 else 0 end) <> 0`),
)
const removeFeed = statement<{ upTo: number }>()((db, p) => db.deleteFrom('feed').where('sequence', '<=', p.upTo))
const removeComposed = statement<{ sequences: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('composed_event').where('sequence', 'in', oneOf(p.sequences)),
)
const upsertMark = statement<{ atMs: number; sequence: number; parcelId: number }>()((db, p) =>
  db
    .insertInto('age_mark')
    .values({ at_ms: p.atMs, sequence: p.sequence, parcel_id: p.parcelId })
    .onConflict((conflict) => conflict.column('at_ms').doUpdateSet({ sequence: p.sequence, parcel_id: p.parcelId })),
)
const dropMarks = statement<{ beforeMs: number; afterMs: number }>()((db, p) =>
  db.deleteFrom('age_mark').where((of) => of.or([of('at_ms', '<', p.beforeMs), of('at_ms', '>', p.afterMs)])),
)

/** The transaction of a retention pass, which also finds old data and removes it. Parcels and texts are removed by verbs of `WriteTx`. */
export function withAgedRows<Tx extends Session>(session: Tx) {
  return {
    ...session,
    ...createAgedReads(session),
    /** Saves a mark. It replaces a mark with the same time. */
    keepMark: (mark: AgeMark) => session.enqueueWrite(upsertMark, { ...mark }),
    /** Deletes the marks from before `beforeMs` and those from after `afterMs`. */
    dropMarks: (outside: { readonly beforeMs: number; readonly afterMs: number }) => session.enqueueWrite(dropMarks, { ...outside }),
    /** Deletes deliveries with their attempts, unless they have been queued again. */
    removeDeliveries: (deliveryIds: readonly number[]) => removeDeliveries(session, deliveryIds),
    /** Deletes the bytes of the pushes in `cleared`. Dismisses the pushes in `closed` if they are in quarantine. */
    clearPushes({ cleared, closed }: { readonly cleared: readonly number[]; readonly closed: readonly number[] }) {
      session.enqueueWrite(clear, { ids: cleared })
      if (closed.length > 0) session.enqueueWrite(close, { ids: closed })
    },
    /** Deletes the bytes of answers, unless the carrier has given the same answer again since. Keeps the order that an answer decides. */
    async clearAnswers(answers: readonly AgedAnswer[]) {
      const orders = await Promise.all(answers.map((answer) => readOrder(session, answer)))
      for (const [at, { parcelId, language, digest, askedAtMs }] of answers.entries())
        session.enqueueWrite(clearAnswer, { parcelId, language, digest, askedAtMs, listed: orders[at] ?? null })
    },
    /** Deletes pushes without a parcel. */
    removePushes: (inboxIds: readonly number[]) => session.enqueueWrite(removePushes, { ids: inboxIds }),
    /** Deletes the events of the feed up to and including a sequence. */
    async pruneFeed(upTo: number) {
      session.enqueueWrite(removeFeed, { upTo })
      await saveSetting(session, PRUNED_TO, Buffer.from(String(upTo)))
    },
    removeComposed: (sequences: readonly number[]) => session.enqueueWrite(removeComposed, { sequences }),
  }
}

/** Returns what is to be kept of an answer that loses its bytes; null: nothing, because it decides no order. */
async function readOrder(
  session: Session,
  { parcelId, language, digest, decidesOrder }: Pick<AgedAnswer, keyof AnswerKey | 'decidesOrder'>,
): Promise<Uint8Array | null> {
  if (!decidesOrder) return null
  const [row] = await session.all(bodyOf, { parcelId, language, digest })
  const listed = row?.body === null || row === undefined ? null : listedIn(row.body, language)
  return listed === null ? null : encodeListed(listed)
}

/** The kept answer of a failure goes with the delivery that it was for, because nothing else tells which parcel it names. */
async function removeDeliveries(session: Session, deliveryIds: readonly number[]): Promise<void> {
  const gone = await session.all(removeEnded, { ids: deliveryIds })
  session.enqueueWrite(removeAttempts, { ids: gone.map(({ id }) => id) })
  session.enqueueWrite(removeFailures, {})
}

/** Deletes up to `limit` operator events and actions, and old troubles. Returns how many events and actions. */
export async function pruneOperations(session: Session, beforeMs: number, limit: number): Promise<number> {
  // These certificates have expired by now.
  await pruneTroubles(session, CERTIFICATE_SUBJECTS, beforeMs)
  const events = await pruneOperatorEvents(session, beforeMs, limit)
  return events === limit ? limit : events + (await pruneActions(session, beforeMs, limit - events))
}

const pushesOf = statement<{ readonly ids: readonly number[]; readonly limit: number }>()((db, p, { oneOf }) =>
  db.selectFrom('inbox').select('id').where('parcel_id', 'in', oneOf(p.ids)).limit(p.limit),
)
const removePushesOf = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) => db.deleteFrom('inbox').where('id', 'in', oneOf(p.ids)))
const removeExpected = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('expected_push').where('parcel_id', 'in', oneOf(p.ids)),
)
const removeSightings = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('sighting').where('parcel_id', 'in', oneOf(p.ids)),
)
const removeAnswers = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('answer').where('parcel_id', 'in', oneOf(p.ids)),
)
const removeLanguages = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('language_asked').where('parcel_id', 'in', oneOf(p.ids)),
)
const removeIdentifiers = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('identifier').where('parcel_id', 'in', oneOf(p.ids)),
)
const removeAudits = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('audit').where('parcel_id', 'in', oneOf(p.ids)).where('kind', '=', sql.lit('join')).returning('detail'),
)

/**
 * Deletes parcels that have no deliveries, with all that belongs to them, and adds `retired` events to the feed. A call deletes at most `limit`
 * pushes. If pushes may be left, `isDone` is false: then call it again. Only the last call deletes the histories, so that nobody sees a part of a
 * history. The transaction must hold the parcels.
 */
export async function retireParcels(tx: WriteTx, ids: readonly number[], limit: number): Promise<{ readonly isDone: boolean }> {
  return await tx.retireParcels(ids, () => removeParcels(tx, ids, limit))
}

async function removeParcels(session: Session, ids: readonly number[], limit: number): Promise<DroppedParcels | null> {
  const pushes = await session.all(pushesOf, { ids, limit })
  if (pushes.length > 0) session.enqueueWrite(removePushesOf, { ids: pushes.map(({ id }) => id) })
  if (pushes.length === limit) return null
  const identifiers = await loadIdentifiersOf(session, ids)
  const contents = await contentsUsedBy(session, ids)
  for (const removal of [removeExpected, removeSightings, removeAnswers, removeLanguages, removeIdentifiers])
    session.enqueueWrite(removal, { ids })
  removeContexts(session, ids)
  removeReportEvidence(session, ids)
  removeOverwritten(session, ids)
  removeWatched(session, ids)
  await removeJoins(session, ids)
  await deleteParcels(session, ids)
  return { identifiers: identifiers.map(({ value }) => value), contents }
}

/** Deletes the audit records of parcels that were joined to these parcels, then of parcels that were joined to those, and so on. */
async function removeJoins(session: Session, into: readonly number[]): Promise<void> {
  const joined = (await session.all(removeAudits, { ids: into })).flatMap(({ detail }) => decodeJoinOrigin(detail) ?? [])
  if (joined.length > 0) await removeJoins(session, joined)
}

const SETTING = 'retention'

const NOTHING: RetentionState = { pass: null, last: null }

export async function loadRetention(session: Session): Promise<RetentionState> {
  return decodeState(await loadSetting(session, SETTING))
}

/** Loads the state of retention, and locks it until the transaction ends. */
export async function lockRetention(tx: Pick<WriteTx, 'loadSetting'>): Promise<RetentionState> {
  return decodeState(await tx.loadSetting(SETTING))
}

function decodeState(stored: Uint8Array | null): RetentionState {
  return (stored === null ? null : decodeSetting<RetentionState>(stored)) ?? NOTHING
}

export async function saveRetention(session: Session, state: RetentionState): Promise<void> {
  await saveSetting(session, SETTING, Buffer.from(JSON.stringify(state)))
}
