import { deriveEntries, instantsTie, orderHistory } from '../../domain/history/history.ts'
import { presentParcel } from '../../domain/history/kept-answers.ts'
import type { AnswerSource } from '../../domain/history/pull-response.ts'
import type { Session } from '../engine.ts'
import { loadAnswers } from './answers.ts'
import type { Contents } from './contents.ts'
import { loadIdentifiers } from './parcels.ts'
import { loadOrders, loadSightings } from './sightings.ts'

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

export interface Known {
  readonly parcelId: number
  readonly trackingIds: readonly string[]
  /** False: the carrier never answered a poll, so there are no answers to load. */
  readonly wasPolled: boolean
}

/** Loads the facts from which an answer about a parcel is built. */
export async function loadAnswerSource(
  session: Session,
  contents: Contents,
  { parcelId, trackingIds, wasPolled }: Known,
): Promise<AnswerSource> {
  const entries = deriveEntries(await loadSightings(session, contents, parcelId, null))
  const ordered = orderHistory(
    entries,
    wasPolled && instantsTie(entries) ? ((await loadOrders(session, [parcelId])).get(parcelId) ?? []) : [],
  )
  return presentParcel(ordered, wasPolled ? await loadAnswers(session, parcelId) : [], trackingIds)
}
