import { sql } from 'kysely'
import { decodeJoinOrigin } from '../../core/store/codec.ts'
import type { Session } from '../../core/store/engine.ts'
import { deleteParcels, loadIdentifiersOf } from '../../core/store/history/parcels.ts'
import { contentsUsedBy } from '../../core/store/history/unused-contents.ts'
import { statement } from '../../core/store/statement.ts'

type OfParcels = { readonly ids: readonly number[]; readonly limit: number }

const pushesOf = statement<OfParcels>()((db, p, { oneOf }) =>
  db.selectFrom('inbox').select('id').where('parcel_id', 'in', oneOf(p.ids)).limit(p.limit),
)
const removePushes = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) => db.deleteFrom('inbox').where('id', 'in', oneOf(p.ids)))
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

/** The identifiers of parcels that are deleted now, and the ids of the contents that they used. The engine marks the contents with `markContents`. */
export interface Retired {
  readonly identifiers: readonly string[]
  readonly contents: readonly number[]
}

/**
 * Deletes parcels that have no deliveries, with all that belongs to them. The caller adds the `retired` events to the feed. A call deletes at
 * most `limit` pushes. It returns null if pushes may be left: then call it again. Only the last call deletes the histories, so that nobody
 * sees a part of a history.
 */
export async function removeParcels(session: Session, ids: readonly number[], limit: number): Promise<Retired | null> {
  const pushes = await session.all(pushesOf, { ids, limit })
  if (pushes.length > 0) session.enqueueWrite(removePushes, { ids: pushes.map(({ id }) => id) })
  if (pushes.length === limit) return null
  const identifiers = await loadIdentifiersOf(session, ids)
  const contents = await contentsUsedBy(session, ids)
  for (const removal of [removeExpected, removeSightings, removeAnswers, removeLanguages, removeIdentifiers])
    session.enqueueWrite(removal, { ids })
  await removeJoins(session, ids)
  await deleteParcels(session, ids)
  return { identifiers: identifiers.map(({ value }) => value), contents }
}

/** Deletes the audit records of parcels that were joined to these parcels, then of parcels that were joined to those, and so on. */
async function removeJoins(session: Session, into: readonly number[]): Promise<void> {
  const joined = (await session.all(removeAudits, { ids: into })).flatMap(({ detail }) => decodeJoinOrigin(detail) ?? [])
  if (joined.length > 0) await removeJoins(session, joined)
}
