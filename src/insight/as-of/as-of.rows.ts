import type { Overwritten } from '../../core/domain/history/overwritten.ts'
import { headOf } from '../../core/domain/history/pull-response.ts'
import { decodeSetting } from '../../core/store/codec.ts'
import type { Session } from '../../core/store/engine.ts'
import { loadAnswers } from '../../core/store/history/answers.ts'
import type { Contents } from '../../core/store/history/contents.ts'
import { CLOCK_MARKS, decodeMarks, OVERWRITTEN_SINCE } from '../../core/store/history/overwritten-rows.ts'
import { findIdentifier, loadIdentifiers } from '../../core/store/history/parcels.ts'
import { loadOrders, loadSightings } from '../../core/store/history/sighting-rows.ts'
import { loadSetting } from '../../core/store/settings.ts'
import { statement } from '../../core/store/statement.ts'
import { listRestores } from '../../upkeep/restore/restores.rows.ts'
import type { KnownHistory } from './as-of.rules.ts'

const ofParcel = statement<{ parcelId: number }>()((db, p) =>
  db.selectFrom('overwritten').select(['nth', 'sequence', 'learnt_at_ms', 'value']).where('parcel_id', '=', p.parcelId).orderBy('nth'),
)

/** Loads all that decides what was known of a parcel at any time; null: no parcel has the identifier. Call it on one snapshot of the store. */
export async function loadKnownHistory(session: Session, contents: Contents, identifier: string): Promise<KnownHistory | null> {
  const found = await findIdentifier(session, identifier)
  if (found === null) return null
  const { parcelId } = found
  const identifiers = await loadIdentifiers(session, parcelId)
  const rows = await session.all(ofParcel, { parcelId })
  const since = await loadSetting(session, OVERWRITTEN_SINCE)
  const [sequence, atMs] = (since === null ? null : decodeSetting<readonly [number, number]>(since)) ?? []
  return {
    sightings: await loadSightings(session, contents, parcelId, null),
    head: headOf(await loadAnswers(session, parcelId)),
    order: (await loadOrders(session, [parcelId])).get(parcelId) ?? [],
    trackingIds: identifiers.filter((row) => row.is_tracking_id === 1).map(({ value }) => value),
    identifiers: identifiers.map(({ value }) => value),
    overwritten: rows.map(({ sequence: from, learnt_at_ms: learntAtMs, value }) => ({
      ...decodeSetting<Overwritten>(Buffer.from(value)),
      sequence: from,
      learntAtMs,
    })),
    isCut: (rows[0]?.nth ?? 1) > 1,
    marks: decodeMarks(await loadSetting(session, CLOCK_MARKS)).map(([before, reachedMs]) => ({ sequence: before, atMs: reachedMs })),
    since: sequence === undefined || atMs === undefined ? null : { sequence, atMs },
    restores: await replacedSpans(session),
  }
}

/** Returns the times between which the relay answered from a store that a restore has replaced. */
export async function replacedSpans(session: Session): Promise<KnownHistory['restores']> {
  return (await listRestores(session)).map((restore) => ({ fromMs: restore.madeAtMs ?? 0, toMs: restore.atMs }))
}
