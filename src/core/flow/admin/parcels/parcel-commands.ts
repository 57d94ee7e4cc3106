import type { ActionName, Actor, OperatorAction } from '../../../domain/admin/operator-action.ts'
import { AppError } from '../../../domain/errors.ts'
import { readIdentifier } from '../../../domain/identifiers.ts'
import type { DuePoll } from '../../../domain/polling/poll.ts'
import type { Relay, Writes } from '../../relay.ts'

/** How a poll that an operator has ordered ends. */
type PollEnd = 'recorded' | 'unknown' | 'unusable' | 'unavailable'

export interface ParcelCommandsPorts
  extends Pick<Relay, 'clock'>,
    Writes<'watch' | 'unwatch' | 'claimPoll' | 'recordAction' | 'erasedAtMs'> {
  readonly refresh: { refreshNow(due: DuePoll): Promise<PollEnd> }
  /** Asks the carrier about an identifier that no parcel has. Throws `erased`. */
  readonly fetchUnknown: (identifier: string, operator: string) => Promise<PollEnd>
  /** Marks a parcel as being polled while `work` runs. */
  readonly underWay: { during<Value>(parcelId: number, work: () => Promise<Value>): Promise<Value> }
  /** Returns a sentence that says why the carrier cannot be asked now, and until when; '': not known. */
  readonly whyNotAsked: () => string
}

/**
 * The orders that operators give about parcels (CONTRACT, `/relay/parcels`). Identifiers are raw path text; a malformed one throws
 * `bad_tracking_number`.
 */
export interface ParcelCommands {
  /** Watches an identifier from now on. `created`: its parcel is new. */
  watch(identifier: string, by: Actor): Promise<{ readonly identifier: string; readonly created: boolean }>
  /** Stops polling until a push comes or an app asks. Deletes nothing. Throws `not_found`. */
  unwatch(identifier: string, by: Actor): Promise<{ readonly identifier: string; readonly stopped: 'unwatched' }>
  /**
   * Polls now, in every configured language. An identifier without a parcel is polled in the first language, and gets a parcel if the
   * carrier knows it. Throws `erased` and `upstream_unavailable`.
   */
  refresh(identifier: string, by: Actor): Promise<{ readonly identifier: string; readonly outcome: 'recorded' | 'unknown' }>
}

/** A refreshed parcel gets no scheduled poll for this long. It gets none while `underWay` lists it, either. */
const LEASE_MS = 60_000
const RETRY_AFTER_MS = 30_000

export function createParcelCommands({ write, refresh, fetchUnknown, underWay, whyNotAsked, clock }: ParcelCommandsPorts): ParcelCommands {
  const orderOf = (by: Actor, action: ActionName, identifier: string): OperatorAction => ({
    atMs: clock.now(),
    by,
    action,
    target: { kind: 'parcel', id: identifier },
    detail: {},
  })
  return {
    async watch(text, by) {
      const identifier = readIdentifier(text)
      const watched = await write.watch({ identifier, nowMs: clock.now(), action: orderOf(by, 'parcel.watched', identifier) })
      if (watched === null) {
        const erasedAtMs = await write.erasedAtMs({ identifier, nowMs: clock.now() })
        const when = erasedAtMs === null ? '' : ` at ${new Date(erasedAtMs).toISOString()}`
        throw new AppError('erased', `This identifier belongs to a parcel that was erased${when}, so it cannot be watched.`)
      }
      return { identifier, created: watched.created }
    },
    async unwatch(text, by) {
      const identifier = readIdentifier(text)
      const unwatched = await write.unwatch({ identifier, action: orderOf(by, 'parcel.unwatched', identifier) })
      if (unwatched === null) throw new AppError('not_found', 'No parcel has this identifier.')
      return { identifier, stopped: 'unwatched' }
    },
    async refresh(text, by) {
      const identifier = readIdentifier(text)
      const due = await write.claimPoll({ identifier, nowMs: clock.now(), leaseMs: LEASE_MS })
      // Pushes contain only tracking ids, so a tracking number may have no parcel until a poll ties it to them (DOMAIN 1.2).
      const outcome =
        due === null ? await fetchUnknown(identifier, by.name) : await underWay.during(due.parcelId, () => refresh.refreshNow(due))
      await write.recordAction({ ...orderOf(by, 'parcel.refreshed', identifier), detail: { outcome } })
      if (outcome === 'unavailable' || outcome === 'unusable') {
        const detail =
          outcome === 'unusable'
            ? 'The carrier gave no usable answer about this parcel, so it is not known whether it knows the parcel.'
            : `The carrier cannot be asked now. ${whyNotAsked()}`.trimEnd()
        throw new AppError('upstream_unavailable', detail, { retryAfterMs: RETRY_AFTER_MS })
      }
      return { identifier, outcome }
    },
  }
}
