import { deriveEntries, instantsTie, orderHistory } from '../domain/history.ts'
import { presentParcel } from '../domain/parcel-record.ts'
import type { AnswerSource } from '../domain/pull-response.ts'
import { loadAnswers } from './answers.ts'
import type { Contents } from './contents.ts'
import type { Session } from './engine.ts'
import { loadIdentifiers } from './parcels.ts'
import { loadOrder, loadSightings } from './sightings.ts'

/** A parcel as it is answered, and everything that finds it. */
export async function viewParcel(
  session: Session,
  contents: Contents,
  parcelId: number,
): Promise<AnswerSource & { readonly identifiers: readonly string[] }> {
  const entries = deriveEntries(await loadSightings(session, contents, parcelId, null))
  const ordered = orderHistory(entries, instantsTie(entries) ? await loadOrder(session, parcelId) : [])
  const identifiers = await loadIdentifiers(session, parcelId)
  const trackingIds = identifiers.filter((row) => row.is_tracking_id === 1).map((row) => row.value)
  const presented = presentParcel(ordered, await loadAnswers(session, parcelId), trackingIds)
  return { ...presented, identifiers: identifiers.map((row) => row.value) }
}
