import { AppError } from '../../domain/errors.ts'
import type { DuePoll } from '../../domain/polling/poll.ts'
import type { Clock } from '../ports.ts'
import { readIdentifier } from '../read-identifier.ts'
import type { WriteSide } from '../write-side.ts'

export interface ParcelCommandsPorts {
  readonly write: Pick<WriteSide, 'watch' | 'unwatch' | 'claimPoll'>
  /** A kept answer would keep the next question from reviving the parcel. */
  readonly invalidate: (parcelIds: readonly number[]) => void
  readonly refresh: { refreshNow(due: DuePoll): Promise<'recorded' | 'unknown' | 'unavailable'> }
  /** Counts a parcel as asked about for as long as the work lasts. */
  readonly asking: { during<Value>(parcelId: number, work: () => Promise<Value>): Promise<Value> }
  readonly clock: Clock
}

/** What operators do to parcels (CONTRACT, `/relay/parcels`). Identifiers are raw path text; a malformed one is `bad_tracking_number`. */
export interface ParcelCommands {
  /** Watches an identifier from now on; `created`: no parcel had it. */
  watch(identifier: string): Promise<{ readonly identifier: string; readonly created: boolean }>
  /** Polls for it no more, until a push or an app's question. Deletes nothing. Throws `not_found`. */
  unwatch(identifier: string): Promise<{ readonly identifier: string; readonly stopped: 'unwatched' }>
  /** Asks the carrier now, in every configured language. Throws `not_found` for an identifier no parcel has. */
  refresh(identifier: string): Promise<{ readonly identifier: string; readonly outcome: 'recorded' | 'unknown' }>
}

/** How long nobody else asks about a parcel that an operator asks about, until it is known to go on. */
const LEASE_MS = 60_000
const RETRY_AFTER_MS = 30_000

export function createParcelCommands({ write, invalidate, refresh, asking, clock }: ParcelCommandsPorts): ParcelCommands {
  return {
    async watch(text) {
      const identifier = readIdentifier(text)
      const { created } = await write.watch({ identifier, nowMs: clock.now() })
      return { identifier, created }
    },
    async unwatch(text) {
      const identifier = readIdentifier(text)
      const unwatched = await write.unwatch({ identifier })
      if (unwatched === null) throw new AppError('not_found', 'No parcel has this identifier.')
      invalidate([unwatched.parcelId])
      return { identifier, stopped: 'unwatched' }
    },
    async refresh(text) {
      const identifier = readIdentifier(text)
      const due = await write.claimPoll({ identifier, nowMs: clock.now(), leaseMs: LEASE_MS })
      if (due === null) throw new AppError('not_found', 'No parcel has this identifier. Watch it first.')
      const outcome = await asking.during(due.parcelId, () => refresh.refreshNow(due))
      if (outcome === 'unavailable') {
        throw new AppError('upstream_unavailable', 'The carrier cannot be asked now.', { retryAfterMs: RETRY_AFTER_MS })
      }
      return { identifier, outcome }
    },
  }
}
