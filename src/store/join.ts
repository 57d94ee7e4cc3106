import { sightingId } from '../domain/sightings.ts'
import { toldEither } from '../domain/told.ts'
import { loadAnswers, moveAnswers } from './answers.ts'
import { encodeTold } from './codec.ts'
import type { Contents } from './contents.ts'
import { moveDeliveries } from './deliveries.ts'
import { listEndpoints } from './endpoints.ts'
import type { Session } from './engine.ts'
import { appendAudit, moveExpectedPushes } from './feed.ts'
import { moveInbox } from './inbox.ts'
import { deleteParcel, loadIdentifiers, loadParcel, moveIdentifiers, saveParcel } from './parcels.ts'
import { deleteSightings, loadSightings, saveSighting } from './sightings.ts'

export interface Join {
  readonly into: number
  readonly from: number
  readonly nowMs: number
  readonly sequence: number
}

/** Moves all that is known of one parcel to another, and writes down what was whose (DOMAIN 1.4). */
export async function joinParcels(session: Session, contents: Contents, { into, from, nowMs, sequence }: Join): Promise<void> {
  const state = await loadParcel(session, from)
  const survivor = await loadParcel(session, into)
  const moving = await loadSightings(session, contents, from, null)
  const staying = await loadSightings(session, contents, into, null)
  const detail = {
    from: state,
    into: survivor,
    identifiers: (await loadIdentifiers(session, from)).map((identifier) => identifier.value),
    sightings: moving.map((kept) => [sightingId(kept), kept.askedAtMs, kept.sequence, encodeTold(kept.told)]),
    stayed: staying.map((kept) => [sightingId(kept), kept.askedAtMs, encodeTold(kept.told)]),
    answers: (await loadAnswers(session, from)).map(({ language, digest, askedAtMs }) => [language, digest, askedAtMs]),
  }
  await appendAudit(session, { sequence, atMs: nowMs, kind: 'join', parcelId: into, detail })

  const known = new Map(staying.map((kept) => [sightingId(kept), kept]))
  for (const kept of moving) {
    const same = known.get(sightingId(kept))
    const askedAtMs = Math.max(kept.askedAtMs, same?.askedAtMs ?? 0)
    const told = same === undefined ? kept.told : toldEither(kept.told, same.told)
    if (askedAtMs !== same?.askedAtMs || told !== same?.told) await saveSighting(session, contents, into, { ...kept, askedAtMs, told })
  }
  await deleteSightings(session, from)
  await moveAnswers(session, from, into)
  await moveIdentifiers(session, from, into)
  await moveInbox(session, from, into)
  await moveExpectedPushes(session, from, into)
  for (const { endpoint } of await listEndpoints(session)) await moveDeliveries(session, endpoint.id, { from, into, nowMs })
  const joined = {
    ...survivor,
    watchedAtMs: least(survivor.watchedAtMs, state.watchedAtMs),
    firstPushedAtMs: least(survivor.firstPushedAtMs, state.firstPushedAtMs),
    revivedAtMs: Math.max(survivor.revivedAtMs, state.revivedAtMs),
    heardAtMs: greatest(survivor.heardAtMs, state.heardAtMs),
    checkedAtMs: greatest(survivor.checkedAtMs, state.checkedAtMs),
    full: survivor.full || state.full,
  }
  saveParcel(session, joined, null)
  await deleteParcel(session, from)
}

function least(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b)
}

function greatest(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b)
}
