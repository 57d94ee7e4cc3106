import { sql } from 'kysely'
import { isUnheardOf, type ParcelView } from '../../domain/history/parcel-state.ts'
import { isLanguageMissing } from '../../domain/history/pull-response.ts'
import type { Session } from '../engine.ts'
import { loadLanguagesAsked } from '../settings.ts'
import { statement } from '../statement.ts'
import type { Contents } from './contents.ts'
import { loadAnswerSource } from './parcel-view.ts'

/**
 * Finds a parcel and what is needed to serve it, by any of its identifiers. It uses subqueries instead of joins: SQLite plans a join again
 * each time a parameter is bound, and planning takes four times as long as running the query.
 */
const findHead = statement<{ identifier: string }>()((db, p, { joined, parcelVersion }) =>
  db
    .selectFrom('parcel')
    .select((of) => [
      'id',
      'last_seen_at_ms',
      'next_poll_at_ms',
      'checked_at_ms',
      'failures',
      parcelVersion.as('version'),
      of
        .selectFrom('identifier')
        .select((row) => joined(row.ref('identifier.value')).as('values'))
        .whereRef('identifier.parcel_id', '=', 'parcel.id')
        .where('identifier.is_tracking_id', '=', sql.lit(1))
        .as('tracking_ids'),
      of.exists(of.selectFrom('answer').select('language').whereRef('answer.parcel_id', '=', 'parcel.id')).as('was_polled'),
      of.exists(of.selectFrom('language_asked').select('language').whereRef('language_asked.parcel_id', '=', 'parcel.id')).as('was_asked'),
    ])
    .where('id', '=', (of) => of.selectFrom('identifier').select('parcel_id').where('value', '=', p.identifier)),
)

/** Loads a parcel as apps see it, by any of its identifiers; null: no parcel has this identifier. */
export async function findParcel(session: Session, contents: Contents, identifier: string): Promise<ParcelView | null> {
  const [head] = await session.all(findHead, { identifier })
  if (head === undefined) return null
  const parcelId = head.id
  const source = await loadAnswerSource(session, contents, {
    parcelId,
    // Identifiers never contain commas.
    trackingIds: head.tracking_ids?.split(',') ?? [],
    wasPolled: Boolean(head.was_polled),
  })
  return {
    parcelId,
    version: head.version,
    ...source,
    lastSeenAtMs: head.last_seen_at_ms,
    watched: head.next_poll_at_ms !== null,
    unknownToCarrier: isUnheardOf({ lastSeenAtMs: head.last_seen_at_ms, checkedAtMs: head.checked_at_ms, failures: head.failures }),
    languagesAsked: head.was_asked ? await languagesAsked(session, parcelId, source.entries) : [],
  }
}

/** Lists the languages that were fetched. Leaves out a language if an entry came after the fetch and has no text in that language. */
async function languagesAsked(session: Session, parcelId: number, entries: ParcelView['entries']): Promise<readonly string[]> {
  const asked = await loadLanguagesAsked(session, parcelId)
  const stillAsked = asked.filter(({ language, sequence }) => {
    const since = entries.filter((entry) => entry.sequence > sequence)
    return !isLanguageMissing(since, language)
  })
  return stillAsked.map(({ language }) => language)
}
