import type { DuePoll } from '../../domain/polling/poll.ts'
import type { Part, Reads, Writes } from '../relay.ts'

/**
 * Claims a parcel that the carrier has answered before, due or not; null: there is none. If a failing carrier works again, it most likely answers
 * about such a parcel.
 */
export type ClaimAnswered = (leaseMs: number) => Promise<DuePoll | null>

/** @param random returns a number from 0 (inclusive) to 1 (exclusive). */
export function createClaimAnswered(
  { reads, write, clock }: Part<'clock', 'now'> & Reads<'answeredParcels'> & Writes<'claimPoll'>,
  random: () => number,
): ClaimAnswered {
  return async (leaseMs) => {
    const known = await reads.answeredParcels()
    const identifier = known[Math.floor(random() * known.length)]
    return identifier === undefined ? null : await write.claimPoll({ identifier, nowMs: clock.now(), leaseMs })
  }
}
