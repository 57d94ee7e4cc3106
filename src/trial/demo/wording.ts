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

/** Writes the line that says that further happenings of a kind get no line of their own. */
export function presentElision(kind: HappeningKind): string {
  return `${WORDS[kind]} (more of these are only counted)`
}

/**
 * Returns the parts of the line of totals. `pushes received` and `duplicates` are metrics of the relay. The subscriber counts its own events. The
 * other numbers compare the carrier with the relay. The relay's metric of missed pushes also counts late pushes, so it may be higher than `gaps
 * filled by polls`.
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

/** Returns a line for each replica; no lines if there is only one relay. */
export function presentReplicas({ replicas }: Picture): readonly string[] {
  return replicas.length < 2 ? [] : replicas.map(presentReplica)
}

function presentReplica({ name, isRunning, pushes, roles }: ReplicaNews): string {
  const duties = DUTIES.filter(([role]) => roles.some((held) => held.startsWith(role))).map(([, duty]) => duty)
  const state = !isRunning ? 'has ended' : duties.length === 0 ? 'has no role' : duties.join(', ')
  return `  ${name}: received ${pushes.received} of the pushes, ${state}`
}
