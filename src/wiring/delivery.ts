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
  /** See `DispatcherPorts`. */
  readonly drainReplies: () => void
  /** The ports the relay itself listens on, which no endpoint may have. */
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
  /** Starts sending. Nothing is sent before, because the relay's own ports may not be known yet. */
  start(): void
  /** Call when there is something new to deliver. */
  wake(): void
  /** Call when the order of a parcel's waiting deliveries may have changed. */
  review(): void
  /** Applies the endpoints of a reloaded config and leaves those managed by API alone. Rejects, with nothing changed, if it cannot. */
  reload(next: Config): Promise<void>
  /** Makes long requests, such as replays, end where they are. */
  hurry(): void
  stop(): Promise<void>
}

const SIGNERS_MAX = 1000
/** Events of the feed per transaction; few, so that a push meanwhile waits no longer than for a batch. */
const CATCH_UP_EVENTS = 100

/** Assembles the outbound half: endpoints, the guard on their addresses, the sender, and the worker that drives it. */
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
    { ...deliveryRules(config), relayId, claimsMax: config.limits.batch, perEndpoint: configured.perEndpoint },
  )
  const { wake, reorder } = dispatching
  const feedReplay = startRetryingWorker(
    async () => {
      const { queued, isDone } = await write.replayFeed({ limit: CATCH_UP_EVENTS, nowMs: clock.now() })
      if (queued > 0) wake()
      return isDone ? 'idle' : 'busy'
    },
    { log, clock, failure: 'cannot queue events of the feed for an endpoint; the relay retries' },
  )
  const inTurn = createInTurn(clock.monotonic)
  const stopping = new AbortController()
  const longWork = startRetryingWorker(
    async () => {
      // Before jobs, because a job may replay what is to be cancelled.
      if (!(await inTurn(() => write.cancelRemoved({ limit: REPLAY_BATCH_SIZE }))).isDone) return 'busy'
      const { isDone } = await inTurn(() => write.workOnJobs({ limit: REPLAY_BATCH_SIZE, nowMs: clock.now() }))
      reorder()
      return isDone ? 'idle' : 'busy'
    },
    { log, clock, failure: 'part of a background job failed; the relay retries' },
  )
  /** Call when endpoints have changed. */
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
