import type { PushHealthMonitor } from '../core/flow/polling/poller.ts'
import { createModelSharing, type ModelSharingPorts } from '../core/flow/polling/shared-model.ts'
import { startRepeating } from '../core/runtime/schedule.ts'
import type { Delivery } from '../core/wiring/delivery/open-delivery.ts'
import type { CommitSignal } from '../core/wiring/open-recording.ts'
import type { SharedStore } from '../core/wiring/opened-storage.ts'
import type { Polling } from '../core/wiring/polling.ts'
import type { Relay } from '../core/wiring/relay.ts'
import type { Membership } from '../core/wiring/replica-name.ts'
import { createTidyReplicas } from '../server/replicas/replicas.ts'

/** How often this replica sends the poller what it has learnt about the carrier. */
const LEAVE_EVERY_MS = 1000
/** How often this replica loads the model of the carrier that the poller has saved. */
const LOAD_EVERY_MS = 10_000

const LOOK_AT_ENDPOINTS_MS_MAX = 60_000

/** Returns how often to look for endpoints to remove, so that the removal is at most a tenth of `removeAfter` late. */
function lookAtEndpointsEvery(removeAfterMs: number): number {
  return Math.min(LOOK_AT_ENDPOINTS_MS_MAX, removeAfterMs / 10)
}

type DutiesOfShared = Pick<SharedStore, 'replicas' | 'clearMoves'> & Pick<ModelSharingPorts, 'model'>

export interface DutiesPorts extends Pick<Relay, 'closing' | 'log'> {
  readonly operator: Pick<Relay['operator'], 'tryDaily'>
  readonly replicas: Pick<Membership, 'holds' | 'id' | 'list'>
  readonly shared: DutiesOfShared | null
  readonly commitSignal: Pick<CommitSignal, 'subscribe'>
  readonly delivery: Pick<Delivery, 'wake' | 'review' | 'reviewAll' | 'drained' | 'lapsed' | 'restore' | 'removeUnnamed'>
  readonly polling: Pick<Polling, 'taken' | 'giveUp'>
  readonly pushes: Pick<PushHealthMonitor, 'look'>
  /** How long an endpoint stays when no config names it any more, in milliseconds. */
  readonly removeAfterMs: number
  /** Called when another replica moves the store. */
  readonly awaitMove: () => void
  /** Called when the feed has new events. */
  readonly tellFollowers: () => void
  /** Called when events of the feed that are in memory may be gone from the store. */
  readonly forgetFeed: () => void
}

/** Begins to react to commits of this replica. If the store is shared, also takes roles and reacts to commits of other replicas. */
export function beginDuties(ports: DutiesPorts): void {
  const { shared, commitSignal, delivery, closing, log } = ports
  const removeUnnamed = async () => {
    await delivery.removeUnnamed()
    if (ports.replicas.holds('janitor')) await ports.operator.tryDaily()
  }
  commitSignal.subscribe({
    committed: (_source, { joined, queued }) => (joined ? delivery.review() : queued ? delivery.wake() : undefined),
    failed: () => undefined,
  })
  const watching = startRepeating(
    () =>
      removeUnnamed().catch((err: unknown) => log.warn({ err }, 'cannot check which endpoints the configs name; the relay tries again')),
    lookAtEndpointsEvery(ports.removeAfterMs),
  )
  closing.add(() => watching.stop())
  if (shared !== null) beginSharing(shared, { ...ports, delivery: { ...delivery, removeUnnamed } })
}

function beginSharing({ replicas, model, clearMoves }: DutiesOfShared, ports: DutiesPorts): void {
  const { replicas: membership, delivery, polling, pushes, tellFollowers, closing, log } = ports
  const tidy = createTidyReplicas({ replicas: membership, clearMoves, delivery, log })
  const sharing = createModelSharing({ model, isPoller: () => membership.holds('poller'), lookAtPushes: pushes.look, log })
  for (const timer of [startRepeating(sharing.leave, LEAVE_EVERY_MS), startRepeating(sharing.load, LOAD_EVERY_MS)])
    closing.add(() => timer.stop())
  closing.add(sharing.leave)
  replicas.begin(
    {
      taken(roles) {
        if (roles.includes('poller')) polling.taken()
        if (roles.includes('janitor')) void tidy()
        delivery.reviewAll()
      },
      async giveUp(role) {
        if (role === 'poller') await polling.giveUp()
        await delivery.drained(role)
      },
      lapsed: delivery.lapsed,
    },
    {
      committed() {
        tellFollowers()
        delivery.wake()
      },
      reordered() {
        delivery.reviewAll()
        // Another replica may have erased a parcel whose events are in memory.
        ports.forgetFeed()
      },
      replicasChanged() {
        void tidy()
        // If no replica delivers to an endpoint any more, the next dispatch round ends its skipped deliveries.
        delivery.review()
      },
      moving: ports.awaitMove,
      setBack: ports.forgetFeed,
    },
  )
}
