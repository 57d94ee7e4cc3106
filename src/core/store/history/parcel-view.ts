import { sql } from 'kysely'
import type { FeedParcel } from '../../domain/delivery/feed-entry.ts'
import { deriveEntries, instantsTie, orderHistory } from '../../domain/history/history.ts'
import { NO_CONTEXT } from '../../domain/history/order-context.ts'
import { isUnheardOf, type ParcelView } from '../../domain/history/parcel-state.ts'
import { type AnswerSource, isLanguageMissing, presentParcel } from '../../domain/history/pull-response.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import type { KeptBody, Loaded, Needs } from '../../domain/history/snapshot.ts'
import type { Session } from '../engine.ts'
import { listPushes } from '../ingest/inbox-rows.ts'
import { loadLanguagesAsked } from '../settings.ts'
import { statement } from '../statement.ts'
import { loadAnswers, loadAnswersOf } from './answers.ts'
import type { Contents } from './contents.ts'
import { loadContexts } from './order-contexts.ts'
import { loadIdentifiers, loadIdentifiersOf } from './parcels.ts'
import { loadOrders, loadSightings } from './sighting-rows.ts'

/** Loads a parcel as apps see it, with all its identifiers. */
export async function viewParcel(
  session: Session,
  contents: Contents,
  parcelId: number,
): Promise<AnswerSource & { readonly identifiers: readonly string[] }> {
  const identifiers = await loadIdentifiers(session, parcelId)
  const trackingIds = identifiers.filter((row) => row.is_tracking_id === 1).map((row) => row.value)
  const source = await loadAnswerSource(session, contents, { parcelId, trackingIds, wasPolled: true })
  return { ...source, identifiers: identifiers.map((row) => row.value) }
}

/**
 * Loads several parcels, each as `viewParcel` does, in as many statements as for one. `reading`: their sightings. Another statement follows only for
 * parcels with entries at the same instant.
 */
export async function viewParcels(
  session: Session,
  ids: readonly number[],
  reading: Promise<ReadonlyMap<number, readonly KeptSighting[]>>,
): Promise<ReadonlyMap<number, FeedParcel>> {
  const [sightings, answers, identifiers, contexts] = await Promise.all([
    reading,
    loadAnswersOf(session, ids),
    loadIdentifiersOf(session, ids),
    loadContexts(session, ids),
  ])
  const named = Map.groupBy(identifiers, (row) => row.parcel_id)
  const entries = new Map(ids.map((id) => [id, deriveEntries(sightings.get(id) ?? [])]))
  const tied = answers.size === 0 ? [] : ids.filter((id) => answers.has(id) && instantsTie(entries.get(id) ?? []))
  const orders = await loadOrders(session, tied)
  return new Map(
    ids.map((parcelId) => {
      const names = named.get(parcelId) ?? []
      const trackingIds = names.filter((row) => row.is_tracking_id === 1).map((row) => row.value)
      const ordered = orderHistory(entries.get(parcelId) ?? [], orders.get(parcelId) ?? [])
      const presented = presentParcel(ordered, answers.get(parcelId) ?? [], trackingIds)
      return [parcelId, { parcelId, ...presented, identifiers: names.map((row) => row.value), order: contexts.get(parcelId) ?? NO_CONTEXT }]
    }),
  )
}

export interface Known {
  readonly parcelId: number
  readonly trackingIds: readonly string[]
  /** False: the carrier never answered a poll, so there are no answers to load. */
  readonly wasPolled: boolean
}

/** Loads the facts from which an answer about a parcel is built. */
async function loadAnswerSource(session: Session, contents: Contents, { parcelId, trackingIds, wasPolled }: Known): Promise<AnswerSource> {
  const entries = deriveEntries(await loadSightings(session, contents, parcelId, null))
  const ordered = orderHistory(
    entries,
    wasPolled && instantsTie(entries) ? ((await loadOrders(session, [parcelId])).get(parcelId) ?? []) : [],
  )
  return presentParcel(ordered, wasPolled ? await loadAnswers(session, parcelId) : [], trackingIds)
}

/** Loads what a batch needs and what both engines load in the same way: the answers, orders and bodies of parcels. */
export async function loadParcelFacts(session: Session, needs: Needs): Promise<Pick<Loaded, 'answers' | 'orders' | 'bodies' | 'contexts'>> {
  const [answers, orders, bodies, contexts] = await Promise.all([
    loadAnswersOf(session, needs.answers),
    loadOrders(session, needs.orders),
    Promise.all(needs.bodies.map(async (parcelId) => [parcelId, await loadBodies(session, parcelId)] as const)),
    loadContexts(session, needs.contexts),
  ])
  return { answers, orders, bodies: new Map(bodies), contexts }
}

const PUSHES_PER_READ = 100

async function loadBodies(session: Session, parcelId: number): Promise<readonly KeptBody[]> {
  const bodies: KeptBody[] = []
  let after: Uint8Array | null = new Uint8Array()
  while (after !== null) {
    const kept: Awaited<ReturnType<typeof listPushes>> = await listPushes(session, { parcelId, after, limit: PUSHES_PER_READ })
    for (const { inboxId, body } of kept) bodies.push({ inboxId, body })
    after = kept.length < PUSHES_PER_READ ? null : (kept.at(-1)?.digest ?? null)
  }
  return bodies
}

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
