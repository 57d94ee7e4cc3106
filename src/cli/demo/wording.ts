import type { Happening, HappeningKind } from './happenings.ts'
import { type Picture, totalsOf } from './picture.ts'

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

/** Printed after the last of its kind that is shown one by one. */
export function presentElision(kind: HappeningKind): string {
  return `${WORDS[kind]} (more of these are only counted)`
}

/** `pushes received` and `duplicates` are the relay's metrics, the subscriber counts its own events, and the rest compares carrier and relay. */
export function presentTotals(picture: Picture): readonly [string, ...string[]] {
  const { complete, parcels, lost, filled } = totalsOf(picture)
  const { received, duplicates } = picture.pushes
  const { events, wrong } = picture.subscriber
  return [
    `histories complete ${complete}/${parcels}`,
    `pushes received ${received}`,
    `lost by the carrier ${lost}`,
    `of these filled by polls ${filled}`,
    `duplicates ${duplicates}`,
    `sent to the subscriber ${events}`,
    ...(wrong === 0 ? [] : [`with a wrong signature ${wrong}`]),
  ]
}
