import { AppError } from '../domain/errors.ts'
import { parseIdentifier } from '../domain/identifiers.ts'
import type { Clock, WriteSide } from './ports.ts'
import type { Refresh } from './refresh.ts'

export interface ManageParcelsPorts {
  readonly write: Pick<WriteSide, 'watch' | 'claimPoll'>
  readonly refresh: Pick<Refresh, 'refreshNow'>
  readonly clock: Clock
}

/** What operators do to parcels (CONTRACT, `/relay/parcels`). Identifiers are raw path text; a malformed one is `bad_tracking_number`. */
export interface ManageParcels {
  /** Watches an identifier from now on; `created`: no parcel had it. */
  watch(identifier: string): Promise<{ readonly identifier: string; readonly created: boolean }>
  /** Asks the carrier now, in every configured language. Throws `not_found` for an identifier no parcel has. */
  refresh(identifier: string): Promise<{ readonly identifier: string; readonly outcome: 'recorded' | 'unknown' }>
}

/** How long nobody else asks about a parcel that an operator asks about. */
const LEASE_MS = 60_000
const RETRY_AFTER_MS = 30_000

export function createManageParcels({ write, refresh, clock }: ManageParcelsPorts): ManageParcels {
  return {
    async watch(text) {
      const identifier = readIdentifier(text)
      const { created } = await write.watch({ identifier, nowMs: clock.now() })
      return { identifier, created }
    },
    async refresh(text) {
      const identifier = readIdentifier(text)
      const due = await write.claimPoll({ identifier, nowMs: clock.now(), leaseMs: LEASE_MS })
      if (due === null) throw new AppError('not_found', 'No parcel has this identifier. Watch it first.')
      const outcome = await refresh.refreshNow(due)
      if (outcome === 'unavailable') {
        throw new AppError('upstream_unavailable', 'The carrier cannot be asked now.', { retryAfterMs: RETRY_AFTER_MS })
      }
      return { identifier, outcome }
    },
  }
}

function readIdentifier(text: string): string {
  const identifier = parseIdentifier(text)
  if (identifier === null) throw new AppError('bad_tracking_number', 'An identifier is 4 to 40 letters and digits.')
  return identifier
}
