import type { DuePoll } from '../../domain/polling/poll.ts'
import type { Clock } from '../ports.ts'
import type { ReadSide } from '../read-side.ts'
import type { WriteSide } from '../write-side.ts'

/**
 * Claims a parcel that the carrier has answered before, due or not; null: there is none. If a failing carrier works again, it most likely answers
 * about such a parcel.
 */
export type ClaimAnswered = (leaseMs: number) => Promise<DuePoll | null>

export interface ClaimAnsweredPorts {
  readonly reads: Pick<ReadSide, 'answeredParcels'>
  readonly write: Pick<WriteSide, 'claimPoll'>
  readonly clock: Pick<Clock, 'now'>
}

/** @param random returns a number from 0 (inclusive) to 1 (exclusive). */
export function createClaimAnswered({ reads, write, clock }: ClaimAnsweredPorts, random: () => number): ClaimAnswered {
  return async (leaseMs) => {
    const known = await reads.answeredParcels()
    const identifier = known[Math.floor(random() * known.length)]
    return identifier === undefined ? null : await write.claimPoll({ identifier, nowMs: clock.now(), leaseMs })
  }
}
