import type { ParcelState } from '../history/parcel-state.ts'

/** Why the next poll of a parcel is due when it is. */
export type PollReason =
  /** Nothing is known about the parcel, and the carrier was never asked about it. */
  | { readonly kind: 'first' }
  /** The last polls failed. `failures`: how many in a row. */
  | { readonly kind: 'failed'; readonly failures: number; readonly retryMs: number }
  /**
   * The parcel is delivered, and this poll is due `afterMs` after the delivery. `more`: how many polls follow. `isRare`: pushes are reliable, so
   * some of these polls are left out.
   */
  | { readonly kind: 'closing'; readonly afterMs: number; readonly more: number; readonly isRare: boolean }
  /** The parcel is delivered, and a push or an app's question came since the last poll. */
  | { readonly kind: 'revived' }
  /** The interval of the status is over. `status` null: the parcel has no entry. `isRare`: the interval is longer, as pushes are reliable. */
  | { readonly kind: 'interval'; readonly status: string | null; readonly everyMs: number; readonly isRare: boolean }
  /** At this time the carrier has probably scanned the parcel. `everyMs`: the average interval between polls. */
  | { readonly kind: 'likely_scan'; readonly status: string; readonly everyMs: number; readonly isRare: boolean }

const STOPPED: Readonly<Record<NonNullable<ParcelState['stopped']>, string>> = {
  delivered: 'It is delivered, and all checks after that are done.',
  stale: 'Nothing new came for so long that it is not checked any more.',
  unknown: 'The carrier knows none of its identifiers.',
  unwatched: 'Somebody stopped watching it.',
}

export function describeStop(stopped: NonNullable<ParcelState['stopped']>): string {
  return STOPPED[stopped]
}

export const UNKNOWN_ASKED_AGAIN =
  'At the last check, the carrier knew none of its identifiers. Somebody has asked for it since, so it is checked again a day after that check.'

export const ASKED_TO_WAIT = 'The last check failed, and the carrier asked not to be asked again before this time (Retry-After).'

export const WAITS_FOR_CARRIER =
  'Calls to the carrier pause now: it is checked when the carrier answers again, at this time at the earliest.'

export function describePoll(reason: PollReason): string {
  switch (reason.kind) {
    case 'first':
      return 'Nothing is known of it yet: it is asked about soon, unless a push comes first.'
    case 'failed':
      return reason.failures === 1
        ? `The last check failed: it is tried again after ${length(reason.retryMs)}.`
        : `The last ${reason.failures} checks failed: it is tried again after ${length(reason.retryMs)}.`
    case 'closing':
      return describeClosing(reason)
    case 'revived':
      return 'It is delivered, and a push or a question came since the last check: one more check.'
    case 'interval':
      return `${reason.status ?? 'At the last check the carrier reported nothing about it'}: about every ${length(reason.everyMs)}${rare(reason)}.`
    case 'likely_scan':
      return `${reason.status}: at hours when the carrier usually scans parcels, on average about every ${length(reason.everyMs)}${rare(reason)}.`
  }
}

function describeClosing({ afterMs, more, isRare }: Extract<PollReason, { kind: 'closing' }>): string {
  const check =
    afterMs === 0 ? 'It is delivered: one check as soon as the relay knows it' : `It is delivered: the check ${length(afterMs)} after that`
  const rest = more === 0 ? 'the last one' : `${more} more will follow`
  return `${check}, ${rest}${isRare ? '. Pushes are reliable, so some checks of poll.finished.tail are left out' : ''}.`
}

function rare({ isRare }: { readonly isRare: boolean }): string {
  return isRare ? ', because pushes are reliable' : ''
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const

function length(ms: number): string {
  const [name, size] = UNITS.find(([, unitMs]) => ms >= unitMs) ?? (['s', 1000] as const)
  return `${Math.round((ms / size) * 10) / 10} ${name}`
}
