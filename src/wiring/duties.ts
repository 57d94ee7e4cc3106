import { createTidyReplicas } from '../flow/admin/replicas/tidy-replicas.ts'
import type { PushHealthMonitor } from '../flow/polling/push-health-monitor.ts'
import type { Log } from '../flow/ports.ts'
import { startRepeating } from '../runtime/repeating.ts'
import type { Closing } from './closing.ts'
import type { Delivery } from './delivery/delivery.ts'
import type { openPolling } from './polling.ts'
import type { CommitSignal } from './recording.ts'
import type { Replicas } from './replicas.ts'
import type { Storage } from './storage/opened-storage.ts'

/** How often this replica leaves what it was taught. */
const LEAVE_EVERY_MS = 1000
/** How often it takes up what the poller has saved. */
const FOLLOW_EVERY_MS = 10_000

const LOOK_AT_ENDPOINTS_MS_MAX = 60_000

/** Often enough that `removeAfter` is kept to a tenth. */
function lookAtEndpointsEvery(removeAfterMs: number): number {
  return Math.min(LOOK_AT_ENDPOINTS_MS_MAX, removeAfterMs / 10)
}

type SharedModel = NonNullable<Storage['model']>

export interface DutiesPorts {
  readonly storage: Pick<Storage, 'model' | 'clearMoves'> & { readonly replicas: Pick<Replicas, 'begin' | 'holds' | 'id' | 'list'> }
  readonly commitSignal: Pick<CommitSignal, 'follow'>
  readonly delivery: Pick<Delivery, 'wake' | 'review' | 'reviewAll' | 'drained' | 'lapsed' | 'restore' | 'removeUnnamed'>
  readonly polling: Pick<ReturnType<typeof openPolling>, 'taken' | 'giveUp'>
  readonly pushes: Pick<PushHealthMonitor, 'look'>
  readonly closing: Closing
  /** After how long an endpoint that no config names is removed. */
  readonly removeAfterMs: number
  /** Call when the store is being moved by another replica. */
  readonly followMove: () => void
  /** Call when the feed has grown. */
  readonly tellFollowers: () => void
  /** Call when the feed may not be any more what was read. */
  readonly forgetFeed: () => void
  readonly log: Log
}

/** Begins to take roles, and to act on what this replica and others commit. */
export function beginDuties(ports: DutiesPorts): void {
  const { storage, commitSignal, delivery, polling, tellFollowers, closing, log } = ports
  const { replicas } = storage
  commitSignal.follow({
    committed: (_source, { joined, queued }) => (joined ? delivery.review() : queued ? delivery.wake() : undefined),
    failed: () => undefined,
  })
  const tidy = createTidyReplicas({ ...storage, delivery, log })
  const watching = startRepeating(
    () =>
      delivery.removeUnnamed().catch((err: unknown) => log.warn({ err }, 'cannot look at the endpoints of configs; the relay tries again')),
    lookAtEndpointsEvery(ports.removeAfterMs),
  )
  closing.add(() => watching.stop())
  if (storage.model !== null) shareModel(storage.model, ports)
  replicas.begin(
    {
      taken(roles) {
        if (roles.includes('poller')) polling.taken()
        if (roles.includes('janitor')) void tidy()
        delivery.reviewAll()
      },
      giveUp: (role) => (role === 'poller' ? polling.giveUp() : delivery.drained(role)),
      lapsed: delivery.lapsed,
    },
    {
      committed() {
        tellFollowers()
        delivery.wake()
      },
      reordered: delivery.reviewAll,
      replicasChanged() {
        void tidy()
        // Somebody must end the skipped deliveries of an endpoint that no replica delivers to any more.
        delivery.review()
      },
      moving: ports.followMove,
      setBack: ports.forgetFeed,
    },
  )
}

/** Leaves what this replica learns for the poller, and takes up what the poller has learnt. */
function shareModel(model: SharedModel, { storage: { replicas }, pushes, closing, log }: DutiesPorts): void {
  const leave = () =>
    model.leave().catch((err: unknown) => log.debug({ err }, 'cannot leave what was learnt for the poller; the relay tries again'))
  const follow = async () => {
    if (replicas.holds('poller')) return
    await model.follow({ resume: false })
    await pushes.look()
  }
  const timers = [
    startRepeating(leave, LEAVE_EVERY_MS),
    startRepeating(
      () => follow().catch((err: unknown) => log.debug({ err }, 'cannot read the model of the carrier; the relay tries again')),
      FOLLOW_EVERY_MS,
    ),
  ]
  for (const timer of timers) closing.add(() => timer.stop())
  closing.add(leave)
}
