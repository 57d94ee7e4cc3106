import type { Happening, HappeningKind } from './happenings.ts'
import { type Picture, totalsOf } from './picture.ts'
import type { ReplicaNews } from './shop.ts'

const WORDS: Readonly<Record<HappeningKind, string>> = {
  pushed: 'push received    ',
  lost: 'push lost        ',
  filled: 'filled by a poll ',
  complete: 'history complete ',
  relayed: 'subscriber got   ',
}

export function presentHappening({ kind, trackingNumber, about }: Happening): string {
  return `${WORDS[kind]} ${trackingNumber}  ${about}`
}

/** Printed after the last happening of a kind that is shown singly. */
export function presentElision(kind: HappeningKind): string {
  return `${WORDS[kind]} (more of these are only counted)`
}

/**
 * `pushes received` and `duplicates` are metrics of the relay; the subscriber counts its own events; the rest compares carrier and relay. The relay's own
 * metric of missed pushes counts late pushes too, so it may be higher than `gaps filled by polls`.
 */
export function presentTotals(picture: Picture): readonly [string, ...string[]] {
  const { complete, parcels, lost, filled, pushes } = totalsOf(picture)
  const { events, wrong } = picture.subscriber
  return [
    `histories complete ${complete}/${parcels}`,
    `pushes received ${pushes.received}`,
    `lost by the carrier ${lost}`,
    `gaps filled by polls ${filled}`,
    `duplicates ${pushes.duplicates}`,
    `sent to the subscriber ${events}`,
    ...(wrong === 0 ? [] : [`with a wrong signature ${wrong}`]),
  ]
}

const DUTIES = [
  ['poller', 'polls'],
  ['dispatcher/', 'delivers'],
  ['janitor', 'keeps house'],
] as const

/** A line for each replica; none if there is only one. */
export function presentReplicas({ replicas }: Picture): readonly string[] {
  return replicas.length < 2 ? [] : replicas.map(presentReplica)
}

function presentReplica({ name, isRunning, pushes, roles }: ReplicaNews): string {
  const duties = DUTIES.filter(([role]) => roles.some((held) => held.startsWith(role))).map(([, duty]) => duty)
  const state = !isRunning ? 'has ended' : duties.length === 0 ? 'has no role' : duties.join(', ')
  return `  ${name}: received ${pushes.received} of the pushes, ${state}`
}
