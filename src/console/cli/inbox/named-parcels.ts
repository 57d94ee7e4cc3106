import type { ListedPushAnswer } from '../../api/inbox.routes.ts'
import { type AskRelay, describeProblem } from '../asking/ask-relay.ts'
import { listUpTo } from '../asking/paged-list.ts'
import { createProgressLine } from '../asking/progress-line.ts'

/** Selects pushes of the inbox. `reason`: why they were quarantined; undefined: for any reason. */
export interface PushSelection {
  readonly state: string
  readonly reason: string | undefined
}

/** A parcel that selected pushes name in their bodies. */
export interface NamedParcel {
  readonly identifiers: readonly string[]
  /** An identifier of this parcel that the relay knows; null: the relay does not know the parcel. */
  readonly knownAs: string | null
}

export interface NamedParcels {
  readonly parcels: readonly NamedParcel[]
  readonly pushes: number
  /** How many pushes contain no identifier that the relay can read. */
  readonly unreadable: number
}

/** Lists all selected pushes in the order of arrival. */
export async function listPushes(ask: AskRelay, { state, reason }: PushSelection): Promise<readonly ListedPushAnswer[]> {
  const asked = { path: '/relay/inbox', name: 'pushes', limit: Infinity, query: { state, reason } }
  return (await listUpTo<ListedPushAnswer>(ask, asked)).items.toReversed()
}

export async function findNamedParcels(ask: AskRelay, selection: PushSelection): Promise<NamedParcels> {
  const pushes = await listPushes(ask, selection)
  const named = new Map<string, ReadonlySet<string>>()
  let unreadable = 0
  for (const push of pushes) {
    const identifiers = await identifiersOf(ask, push)
    if (identifiers.length === 0) unreadable += 1
    // Pushes that share an identifier are about the same parcel.
    const together = new Set(identifiers.flatMap((one) => [...(named.get(one) ?? [one])]))
    for (const one of together) named.set(one, together)
  }
  const groups = [...new Set(named.values())]
  const progress = createProgressLine(process.stderr)
  const parcels: NamedParcel[] = []
  for (const [at, group] of groups.entries()) {
    const identifiers = [...group]
    parcels.push({ identifiers, knownAs: await findKnown(ask, identifiers) })
    progress.show('looking up', at + 1, groups.length, 'parcels')
  }
  progress.end()
  return { parcels, pushes: pushes.length, unreadable }
}

async function identifiersOf(ask: AskRelay, { id, parcel, place, bodyBytes }: ListedPushAnswer): Promise<readonly string[]> {
  // The list shows no identifiers of a push with a long body, so ask for that push by its id.
  if (parcel.identifiers.length > 0 || place !== null || bodyBytes === null) return parcel.identifiers
  const push = await ask<ListedPushAnswer>('GET', `/relay/inbox/${id}`)
  return push.ok ? push.body.parcel.identifiers : []
}

async function findKnown(ask: AskRelay, identifiers: readonly string[]): Promise<string | null> {
  for (const identifier of identifiers) {
    const answer = await ask('GET', `/relay/parcels/${encodeURIComponent(identifier)}`)
    if (answer.ok) return identifier
    if (answer.status !== 404 && answer.status !== 410) throw new Error(`${identifier}: ${describeProblem(answer)}`)
  }
  return null
}
