import { certainNeeds } from '../../domain/history/batch-needs.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import { type Loaded, type Needs, pushKey } from '../../domain/history/snapshot.ts'
import type { Session } from '../engine.ts'
import type { Contents } from '../history/contents.ts'
import { loadParcelFacts } from '../history/parcel-view.ts'
import { loadSightings, loadSightingsOf } from '../history/sightings.ts'
import { findTwin } from '../ingest/inbox.ts'
import type { KnownParcels } from './known-parcels.ts'

/** The writing connection and its caches. */
export interface BatchSource {
  readonly session: Session
  readonly contents: Contents
  readonly known: KnownParcels
}

/** See `WriteTx.loadNeeds`. Loads parcels (mostly from the cache) and pushes first, because they make some other reads needless. */
export async function loadNeeds({ session, contents, known }: BatchSource, asked: Needs): Promise<Loaded> {
  const parcels = await known.findMany(asked.parcels)
  const pushes = new Map<string, number>()
  for (const { parcelId, digest } of asked.pushes) {
    const inboxId = await findTwin(session, parcelId, digest)
    if (inboxId !== null) pushes.set(pushKey(parcelId, digest), inboxId)
  }
  const needs = asked.parcels.length === 0 ? asked : certainNeeds(asked, parcels, pushes)
  const seconds = new Map<number, KeptSighting[]>()
  for (const { parcelId, second } of needs.seconds) {
    const found = await loadSightings(session, contents, parcelId, second)
    seconds.set(parcelId, [...(seconds.get(parcelId) ?? []), ...found])
  }
  const whole = await loadSightingsOf(session, contents, needs.whole)
  return { needs, parcels, pushes, seconds, whole, ...(await loadParcelFacts(session, needs)) }
}
