import type { JoinedParcel, ParcelJoin, ParcelState } from '../../domain/history/parcel-state.ts'
import { moveReportEvidence } from '../admin/report-note-rows.ts'
import { encodeAudience, encodeTellings } from '../codec.ts'
import { moveDeliveries } from '../delivery/deliveries.ts'
import { listEndpointIds } from '../delivery/endpoints.ts'
import { renumberEvents } from '../delivery/feed.ts'
import type { Session } from '../engine.ts'
import { moveInbox } from '../ingest/inbox-rows.ts'
import { moveExpectedPushes } from '../polling/due-polls.ts'
import { statement } from '../statement.ts'
import { loadAnswersOf, moveAnswers } from './answers.ts'
import type { Contents } from './contents.ts'
import { loadContexts, moveContexts } from './order-contexts.ts'
import { removeOverwritten } from './overwritten-rows.ts'
import { deleteParcels, loadNames, moveIdentifiers } from './parcels.ts'
import { encodeInstant, moveSightings, saveSighting } from './sighting-rows.ts'
import { moveWatched } from './watched.ts'

/**
 * Joins parcels (DOMAIN 1.4): moves the rows of the other parcels to the survivor, one table at a time, and deletes the other parcels. The
 * audit trail records what came from which parcel. Returns the identifiers of the deleted parcels.
 */
export async function joinParcels(session: Session, contents: Contents, join: ParcelJoin): Promise<readonly string[]> {
  const { shared, renumbered, nowMs } = join
  const into = join.survivor.state.parcelId
  const from = join.others.map(({ state }) => state.parcelId)
  const names = await loadNames(session, from)
  const answers = await loadAnswersOf(session, [into, ...from])
  const contexts = await loadContexts(session, [into, ...from])

  const stayed = await heldBy(contents, join.survivor)
  const [first] = join.others
  for (const other of join.others) {
    const { state, sequence } = other
    const detail = {
      from: auditNamesOf(state),
      into: auditNamesOf(join.survivor.state),
      identifiers: names.get(state.parcelId) ?? [],
      sightings: await heldBy(contents, other),
      answers: (answers.get(state.parcelId) ?? []).map(({ language, digest, askedAtMs }) => [language, digest, askedAtMs]),
      // Only the first audit record of a join lists the survivor's own sightings. The other records refer to it by its sequence.
      ...(other === first ? { stayed } : { after: first?.sequence }),
      ...(other === first && contexts.size > 0 ? { orders: [...contexts.values()] } : {}),
    }
    appendAudit(session, { sequence, atMs: nowMs, kind: 'join', parcelId: into, detail })
  }

  await moveSightings(session, from, into)
  for (const kept of shared) {
    const contentId = contents.recall(kept.content) ?? (await contents.idOf(kept.content))
    saveSighting(session, into, contentId, kept)
  }
  await Promise.all(renumbered.map((one) => renumberEvents(session, one)))
  await moveAnswers(session, answers, into)
  await moveIdentifiers(session, from, into)
  moveContexts(session, contexts, into)
  // What was known before a join is known only as the joined parcel had it (DOMAIN 11.4).
  removeOverwritten(session, from)
  await moveWatched(session, from, into)
  await moveInbox(session, from, into)
  await moveExpectedPushes(session, from, into)
  await moveReportEvidence(session, from, into)
  // Deliveries of removed endpoints move too, because an erasure and a retention pass find them by their parcel.
  const endpointIds = await listEndpointIds(session)
  await Promise.all(endpointIds.map((endpointId) => moveDeliveries(session, endpointId, { from, into, nowMs })))
  await deleteParcels(session, from)
  return [...names.values()].flat()
}

/** A sighting as the audit trail lists it. `tellings` is left out if it is null. */
type Held = readonly [key: string, ...Facts]
type Facts = readonly [askedAtMs: number, sequence: number, audience: number, learntAtMs: number | null, tellings?: string]

/** Lists a parcel's sightings in the order of their keys, with the columns that may change after the join. */
async function heldBy(contents: Contents, { sightings }: JoinedParcel): Promise<readonly Held[]> {
  const held: { readonly key: readonly number[]; readonly facts: Facts }[] = []
  for (const { sighting, content, listing, ordinal, askedAtMs, sequence, audience, learntAtMs } of sightings) {
    const { at_ms, time_form } = encodeInstant(sighting.instant)
    const contentId = contents.recall(content) ?? (await contents.idOf(content))
    const tellings = encodeTellings(audience)
    const facts = [askedAtMs, sequence, encodeAudience(audience), learntAtMs] as const
    held.push({ key: [at_ms, time_form, contentId, listing, ordinal], facts: tellings === null ? facts : [...facts, tellings] })
  }
  return held.sort((a, b) => compareKeys(a.key, b.key)).map(({ key, facts }): Held => [key.join('/'), ...facts])
}

function compareKeys(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((part, index) => part !== b[index])
  return (a[at] ?? 0) - (b[at] ?? 0)
}

/** Fields that were renamed, with their original names. Audit records use the original names, so that old and new records read alike. */
const AUDIT_NAMES: Readonly<Record<string, string>> = { activatedAtMs: 'revivedAtMs', lastSeenAtMs: 'heardAtMs' }

function auditNamesOf(state: ParcelState): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(state).map(([name, value]) => [AUDIT_NAMES[name] ?? name, value]))
}

const insertAudit = statement<{ sequence: number; atMs: number; kind: string; parcelId: number; detail: string }>()((db, p) =>
  db.insertInto('audit').values({ sequence: p.sequence, at_ms: p.atMs, kind: p.kind, parcel_id: p.parcelId, detail: p.detail }),
)

interface AuditRecord {
  readonly sequence: number
  readonly atMs: number
  readonly kind: 'join'
  readonly parcelId: number
  readonly detail: object
}

/** Records a join in the audit trail, with everything that is needed to undo it. */
function appendAudit(session: Session, record: AuditRecord): void {
  session.enqueueWrite(insertAudit, { ...record, detail: JSON.stringify(record.detail) })
}
