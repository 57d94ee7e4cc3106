import { randomBytes } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { deliveryRules } from '../config/delivery-rules.ts'
import { readCertificates } from '../config/named-file.ts'
import type { DeliverySigner } from '../domain/delivery/delivery-request.ts'
import type { ConfiguredEndpoint } from '../domain/delivery/endpoint-state.ts'
import type { Route } from '../domain/delivery/post-request.ts'
import { createManageJobs, type ManageJobs } from '../flow/admin/manage-jobs.ts'
import { createDispatcher } from '../flow/delivery/dispatcher.ts'
import { createEndpointSigners } from '../flow/delivery/endpoint-signers.ts'
import { createManageDeliveries, type ManageDeliveries, STRETCH } from '../flow/delivery/manage-deliveries.ts'
import { createManageEndpoints, type ManageEndpoints } from '../flow/delivery/manage-endpoints.ts'
import type { Vault } from '../flow/delivery/ports.ts'
import type { RouteOf } from '../flow/delivery/send-delivery.ts'
import type { Log, Meter } from '../flow/ports.ts'
import type { ReadSide } from '../flow/read-side.ts'
import type { WriteSide } from '../flow/write-side.ts'
import { createInTurn } from '../runtime/in-turn.ts'
import { createMemory } from '../runtime/memory.ts'
import { systemClock } from '../runtime/system-clock.ts'
import { createWakeupTimer } from '../runtime/wakeup-timer.ts'
import { startWorker } from '../runtime/worker.ts'
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

const DIRECT: Route = {}
const SIGNERS_MAX = 1000
/** How many events of the feed are looked at in one transaction: whoever pushes meanwhile waits no longer than for a batch. */
const CATCH_UP_EVENTS = 100

/** Puts the outbound half together: endpoints, the guard on where they may be, the sender, and the worker that drives it. */
export async function openDelivery(config: Config, given: DeliveryPorts): Promise<Delivery> {
  const ports = { ...given, clock: systemClock, makeKey: () => randomBytes(KEY_BYTES).toString('base64'), yieldToIo: () => nextTurn() }
  const { write, log, clock } = ports
  let current = config
  let routes = readRoutes(config)
  const routeOf: RouteOf = ({ origin, endpoint }) => (origin === 'config' ? routes.get(endpoint.name) : undefined) ?? DIRECT
  const sync = (next: Config) => write.syncEndpoints(next.endpoints.map(settingsOf), clock.now(), next.operator?.url ?? null)
  await sync(config)
  const outbound = openOutbound(config, ports)
  const { sender } = outbound
  const signerOf = createEndpointSigners({
    vault: ports.vault,
    configuredKey: ({ origin, endpoint }) => {
      const configured = origin === 'operator' ? current.operator : current.endpoints.find(({ name }) => name === endpoint.name)
      return configured?.sharedKey.reveal()
    },
    made: createMemory<DeliverySigner>({ entriesMax: SIGNERS_MAX }),
    log,
  })
  const relayId = await write.relayId()
  const dispatcher = createDispatcher(
    {
      ...ports,
      sender,
      signerOf,
      routeOf,
      random: Math.random,
      wake: (atMs) => (atMs === null ? run() : alarm.set(atMs)),
    },
    { relayId, claimsMax: config.limits.batch, perEndpoint: () => current.delivery.perEndpoint },
  )
  const worker = startWorker(dispatcher.pass, (error) =>
    log.error({ err: error }, 'a pass of the relay failed; it rests until it is woken'),
  )
  let isStarted = false
  const run = () => {
    if (isStarted) worker.wake()
  }
  const wake = () => {
    dispatcher.look()
    run()
  }
  const alarm = createWakeupTimer(run, clock.now)
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
      if (!(await inTurn(() => write.cancelRemoved({ limit: STRETCH }))).isDone) return 'busy'
      const { isDone } = await inTurn(() => write.workOnJobs({ limit: STRETCH, nowMs: clock.now() }))
      reorder()
      return isDone ? 'idle' : 'busy'
    },
    { log, clock, failure: 'a stretch of long work failed; it is tried again' },
  )
  /** What waits may have another place in the order of its parcel. */
  const reorder = () => {
    dispatcher.review()
    run()
  }
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
      isStarted = true
      review()
    },
    wake,
    review: reorder,
    hurry: () => stopping.abort(),
    async reload(next) {
      const before = { current, routes }
      const nextRoutes = readRoutes(next)
      // First the keys: an endpoint that is new is sent to as soon as it is there.
      current = next
      routes = nextRoutes
      try {
        await sync(next)
      } catch (error) {
        current = before.current
        routes = before.routes
        throw error
      }
      await write.adjustDelivery(deliveryRules(next))
      outbound.replace(next)
      review()
    },
    async stop() {
      alarm.cancel()
      await longWork.stop()
      await feedReplay.stop()
      await worker.stop()
      // Before what is under way is interrupted: the end of one attempt is otherwise the beginning of the next.
      const settled = dispatcher.stop()
      await outbound.close()
      await settled
    },
  }
}

function settingsOf(endpoint: Config['endpoints'][number]): ConfiguredEndpoint {
  const { name, url, enabled, signature, filters, backfill, ratePerSecond, concurrency, scheduleMs, from } = endpoint
  return { name, url, enabled, signature, filters, backfill, ratePerSecond, concurrency, scheduleMs, from }
}

/** How the endpoints of the config are reached, by their names. Throws an error that names the setting if a file cannot be used. */
function readRoutes({ endpoints }: Config): ReadonlyMap<string, Route> {
  const routeOf = ({ name, proxy, caFile }: Config['endpoints'][number]): Route => ({
    ...(proxy === null ? {} : { proxy: proxy.reveal() }),
    ...(caFile === null ? {} : { ca: readCertificates(`endpoints: "${name}": caFile`, caFile) }),
  })
  return new Map(endpoints.map((endpoint) => [endpoint.name, routeOf(endpoint)]))
}
