import type { ClockDoubt, OtherClocks } from '../domain/admin/clock-record.ts'
import type { createTokenKeys } from './admin/tokens/token-keys.tx.ts'
import type { createAuditTrail } from './audit.tx.ts'
import type { createDispatchRound } from './delivery/dispatching/settle.tx.ts'
import type { createConfiguredEndpoints, createEditEndpoints } from './delivery/edit-endpoints.tx.ts'
import type { createReplays, createRetryNow } from './delivery/redeliver.tx.ts'
import type { createCarrierMemory } from './polling/carrier-memory.tx.ts'
import type { createClaimDuePolls, createClaimPoll } from './polling/claim-polls.tx.ts'
import type { createModelVerbs } from './polling/model-checkpoint.ts'
import type { createNotePollOutcome } from './polling/schedule-poll.tx.ts'
import type { createWatchParcels } from './polling/watch-parcels.tx.ts'

/**
 * Everything that writes to the store. Arguments and results are plain data, so that the verbs can run on this thread or another. Times are epoch
 * milliseconds. Each wing adds its own verbs to this interface.
 */
export interface WriteSide
  extends ReturnType<typeof createTokenKeys>,
    ReturnType<typeof createAuditTrail>,
    ReturnType<typeof createDispatchRound>,
    ReturnType<typeof createConfiguredEndpoints>,
    ReturnType<typeof createEditEndpoints>,
    ReturnType<typeof createReplays>,
    ReturnType<typeof createRetryNow>,
    ReturnType<typeof createCarrierMemory>,
    ReturnType<typeof createClaimDuePolls>,
    ReturnType<typeof createClaimPoll>,
    ReturnType<typeof createModelVerbs>,
    ReturnType<typeof createNotePollOutcome>,
    ReturnType<typeof createWatchParcels> {
  /** Tells the part that writes how other clocks differ from ours. Returns why our clock is doubted; null: it is not. */
  lookAtClock(others: OtherClocks): Promise<ClockDoubt | null>
  /** The prefix of this relay's event ids. It is created once and never changes. */
  relayId(): Promise<string>
  close(): Promise<void>
}
