import { randomBytes } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { deliveryRules } from '../config/delivery-rules.ts'
import type { DeliverySigner } from '../domain/delivery/delivery-request.ts'
import { createManageJobs, type ManageJobs } from '../flow/admin/manage-jobs.ts'
import { createEndpointSigners } from '../flow/delivery/endpoint-signers.ts'
import { createManageDeliveries, type ManageDeliveries } from '../flow/delivery/manage-deliveries.ts'
import { createManageEndpoints, type ManageEndpoints } from '../flow/delivery/manage-endpoints.ts'
import type { Vault } from '../flow/delivery/ports.ts'
import { REPLAY_BATCH_SIZE } from '../flow/delivery/replays.ts'
import type { Log, Meter } from '../flow/ports.ts'
import type { ReadSide } from '../flow/read-side.ts'
import type { WriteSide } from '../flow/write-side.ts'
import { createInTurn } from '../runtime/in-turn.ts'
import { createMemory } from '../runtime/memory.ts'
import { systemClock } from '../runtime/system-clock.ts'
import { openConfiguredEndpoints } from './configured-endpoints.ts'
import { openDispatching } from './dispatching.ts'
import { openOutbound } from './outbound.ts'
import { startRetryingWorker } from './retrying-worker.ts'

const KEY_BYTES = 32

export interface DeliveryPorts {
  readonly write: WriteSideOfDelivery
  readonly reads: Pick<
    ReadSide,
    'listEndpoints' | 'listDeliveries' | 'findDelivery' | 'countReplayable' | 'findParcel' | 'listJobs' | 'findJob'
  >
  readonly vault: Vault
  readonly meter: Pick<Meter, 'deliveryAttempted'>
  readonly log: Log
  /** See the port of the same name of `createDispatcher`. */
  readonly drainReplies: () => void
  /** The ports the relay itself listens on: never an endpoint's. */
  readonly ownPorts: () => readonly number[]
}

type WriteSideOfDelivery = Pick<
  WriteSide,
  | 'dispatchRound'
  | 'replayFeed'
  | 'adjustDelivery'
  | 'syncEndpoints'
  | 'relayId'
  | 'reserveEndpoint'
  | 'addEndpoint'
  | 'changeEndpoint'
  | 'removeEndpoint'
  | 'replayDeliveries'
  | 'cancelRemoved'
  | 'startJob'
  | 'workOnJobs'
  | 'cancelJob'
  | 'retryEndpoint'
  | 'retryDelivery'
>

export interface Delivery {
  readonly manageEndpoints: ManageEndpoints
  readonly manageDeliveries: ManageDeliveries
  readonly manageJobs: ManageJobs
  /** Sends, from now on. Until then nothing leaves: the ports of the relay's own may not be known yet. */
  start(): void
  /** There is something new to deliver. */
  wake(): void
  /** What waits to be sent may have another place in the order of its parcel. */
  review(): void
  /** Takes the endpoints of a config that was read again; those that are managed are left alone. Rejects, with nothing changed, if it cannot. */
  reload(next: Config): Promise<void>
  /** What somebody waits for and takes long ends where it is. */
  hurry(): void
  stop(): Promise<void>
}

const SIGNERS_MAX = 1000
/** How many events of the feed are looked at in one transaction: whoever pushes meanwhile waits no longer than for a batch. */
const CATCH_UP_EVENTS = 100

/** Puts the outbound half together: endpoints, the guard on where they may be, the sender, and the worker that drives it. */
export async function openDelivery(config: Config, given: DeliveryPorts): Promise<Delivery> {
  const ports = { ...given, clock: systemClock, makeKey: () => randomBytes(KEY_BYTES).toString('base64'), yieldToIo: () => nextTurn() }
  const { write, log, clock } = ports
  const configured = await openConfiguredEndpoints(config, ports)
  const { routeOf } = configured
  const outbound = openOutbound(config, ports)
  const { sender } = outbound
  const signerOf = createEndpointSigners({
    vault: ports.vault,
    configuredKey: configured.keyOf,
    made: createMemory<DeliverySigner>({ entriesMax: SIGNERS_MAX }),
    log,
  })
  const relayId = await write.relayId()
  const dispatching = openDispatching(
    { ...ports, sender, signerOf, routeOf },
    { relayId, claimsMax: config.limits.batch, perEndpoint: configured.perEndpoint },
  )
  const { wake, reorder } = dispatching
  const feedReplay = startRetryingWorker(
    async () => {
      const { queued, isDone } = await write.replayFeed({ limit: CATCH_UP_EVENTS, nowMs: clock.now() })
      if (queued > 0) wake()
      return isDone ? 'idle' : 'busy'
    },
    { log, clock, failure: 'what is in the feed could not be queued for an endpoint; it is tried again' },
  )
  const inTurn = createInTurn(clock.monotonic)
  const stopping = new AbortController()
  const longWork = startRetryingWorker(
    async () => {
      // Before jobs: one may replay what is to be cancelled.
      if (!(await inTurn(() => write.cancelRemoved({ limit: REPLAY_BATCH_SIZE }))).isDone) return 'busy'
      const { isDone } = await inTurn(() => write.workOnJobs({ limit: REPLAY_BATCH_SIZE, nowMs: clock.now() }))
      reorder()
      return isDone ? 'idle' : 'busy'
    },
    { log, clock, failure: 'a stretch of long work failed; it is tried again' },
  )
  /** Endpoints are not what they were. */
  const review = () => {
    reorder()
    feedReplay.wake()
    longWork.wake()
  }
  return {
    manageDeliveries: createManageDeliveries(
      { ...ports, review: reorder, work: longWork.wake, inTurn, stopping: stopping.signal },
      { relayId },
    ),
    manageJobs: createManageJobs(ports),
    manageEndpoints: createManageEndpoints({
      ...ports,
      sender,
      signerOf,
      routeOf,
      refuseUrl: outbound.refuseUrl,
      review,
    }),
    start() {
      dispatching.start()
      review()
    },
    wake,
    review: reorder,
    hurry: () => stopping.abort(),
    async reload(next) {
      await configured.replace(next)
      await write.adjustDelivery(deliveryRules(next))
      outbound.replace(next)
      review()
    },
    async stop() {
      await longWork.stop()
      await feedReplay.stop()
      await dispatching.stop(outbound.close)
    },
  }
}
