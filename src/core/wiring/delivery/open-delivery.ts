import { randomBytes } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { VERSION } from '../../../package-files.ts'
import { type Config, deliveryRules } from '../../config/config.ts'
import { endpointOf, type Role } from '../../domain/admin/replica.ts'
import type { DeliverySigner } from '../../domain/delivery/delivery-request.ts'
import { createDispatcher, type DispatcherOptions, type DispatcherPorts } from '../../flow/delivery/dispatching/dispatcher.ts'
import { createEndpointSigners } from '../../flow/delivery/endpoint-vault.ts'
import { deliveryDuties } from '../../flow/delivery/janitor.ts'
import { createManageDeliveries } from '../../flow/delivery/manage-deliveries.ts'
import { createFilterWarnings, createManageEndpoints, describeWarning } from '../../flow/delivery/manage-endpoints.ts'
import { createMemory } from '../../runtime/answer-cache.ts'
import { createWakeupTimer, startWorker } from '../../runtime/schedule.ts'
import { firstWrite } from '../opened-storage.ts'
import { openOutbound } from '../outbound.ts'
import type { Relay } from '../relay.ts'
import { type FormatOperatorEvent, openConfiguredEndpoints } from './configured-endpoints.ts'

const KEY_BYTES = 32
const USER_AGENT = `parcel-relay/${VERSION}`

type Parts = Pick<Relay, 'path' | 'write' | 'reads' | 'clock' | 'log' | 'replicas' | 'meter' | 'threads'>
type OwnParts = Pick<Relay, 'endpointKeys' | 'duties' | 'ownPorts'> & {
  readonly formatOperatorEvent: FormatOperatorEvent
}

export type Delivery = Awaited<ReturnType<typeof openDelivery>>

const SIGNERS_MAX = 1000

// oxlint-disable-next-line max-lines-per-function -- the order in which the parts are made is clearer in one list
export async function openDelivery(config: Config, parts: Parts & OwnParts) {
  const { vault } = parts.endpointKeys
  const ports = { ...parts, vault, makeKey: () => randomBytes(KEY_BYTES).toString('base64'), yieldToIo: () => nextTurn() }
  const { write } = ports
  const configured = await firstWrite(ports.path, openConfiguredEndpoints(config, ports))
  const { routeOf, operatorMessage } = configured
  await warnAboutFilters(config, ports)
  const outbound = openOutbound(config, parts)
  const signerOf = createEndpointSigners({
    ...ports,
    configured: configured.secretsOf,
    userAgent: USER_AGENT,
    made: createMemory<DeliverySigner>({ entriesMax: SIGNERS_MAX }),
  })
  const relayId = await write.relayId()
  const sending = { ...ports, sender: outbound.sender, signerOf, routeOf, operatorMessage }
  const dispatching = openDispatching(
    { ...sending, held: ports.replicas },
    { ...deliveryRules(config), relayId, claimsMax: config.limits.batch, perEndpoint: configured.perEndpoint },
  )
  const { wake, reorder, reordered, changed } = dispatching
  const { duties } = parts
  for (const duty of deliveryDuties({ ...ports, inTurn: duties.inTurn, onQueued: wake })) duties.add(duty)
  /** Call it when this replica has changed endpoints. */
  const review = () => {
    changed()
    duties.wake()
  }
  return {
    /** The same for all replicas on a store. */
    relayId,
    manageDeliveries: createManageDeliveries(
      { ...sending, ...duties, review: reorder, reviewed: reordered },
      { relayId, userAgent: USER_AGENT },
    ),
    manageEndpoints: createManageEndpoints({ ...sending, ...configured, refuseUrl: outbound.refuseUrl, review }),
    /** With what a request to an endpoint is made. */
    sending,
    unwritten: dispatching.unwritten,
    /** Connects as for a delivery, but sends nothing. */
    tryConnection: outbound.tryConnection,
    /** Starts sending. Call it after `ownPorts` can list the relay's ports. */
    start() {
      dispatching.start()
      review()
    },
    wake,
    /** Call when the order of a parcel's waiting deliveries may have changed. */
    review: reorder,
    /** Call when endpoints, jobs or roles may have changed. */
    reviewAll() {
      reorder()
      duties.wake()
    },
    /** Resumes the endpoints of the config that other replicas paused while this replica counted as dead. */
    async restore() {
      await configured.restore()
      review()
    },
    /** See `openConfiguredEndpoints`. */
    removeUnnamed: configured.removeUnnamed,
    /** Call when this replica has changed endpoints. */
    endpointsChanged: review,
    clientCertificates: configured.clientCertificates,
    /** Resolves when this replica has no work of this role under way. Call it when the replica gives up the role. */
    async drained(role: Role) {
      const endpointId = endpointOf(role)
      if (endpointId !== null) await dispatching.drained(endpointId)
      await duties.rests(role)
    },
    /** Ends all deliveries under way at once. Call it when the lease has run out. */
    lapsed() {
      dispatching.lapsed()
      outbound.interrupt()
    },
    /** Applies the endpoints of a reloaded config. Endpoints that the API manages stay as they are. If it rejects, nothing has changed. */
    async reload(next: Config) {
      await configured.replace(next)
      await write.adjustDelivery(deliveryRules(next))
      outbound.replace(next)
      review()
      await warnAboutFilters(next, ports)
    },
    stop: () => dispatching.stop(outbound.close),
  }
}

/** Logs a warning for each filter with a value that no event has ever had. */
async function warnAboutFilters({ endpoints }: Config, { reads, log }: Pick<Relay, 'reads' | 'log'>): Promise<void> {
  const warningsAbout = createFilterWarnings(reads)
  for (const { name, filters } of endpoints) {
    for (const warning of await warningsAbout(filters)) log.warn({ endpoint: name }, describeWarning(warning))
  }
}

/** Assembles the dispatcher and the worker that runs its rounds. */
export function openDispatching(ports: Omit<DispatcherPorts, 'random' | 'wake'>, options: DispatcherOptions) {
  const { log, clock } = ports
  const wakeAt = (atMs: number | null) => (atMs === null ? run() : wakeup.set(atMs))
  const dispatcher = createDispatcher({ ...ports, random: Math.random, wake: wakeAt }, options)
  const worker = startWorker(dispatcher.pass, (error) =>
    log.error({ err: error }, 'a dispatch round failed; the dispatcher continues when it is next woken'),
  )
  let isStarted = false
  const run = () => {
    if (isStarted) worker.wake()
  }
  const wakeup = createWakeupTimer(run, clock.now)
  return {
    start() {
      isStarted = true
    },
    /** Call when there is something new to deliver. */
    wake() {
      dispatcher.look()
      run()
    },
    /** Call when the order of a parcel's waiting deliveries may have changed. */
    reorder() {
      dispatcher.review()
      run()
    },
    /** Does the same as `reorder`, and resolves when the next round has ended. */
    async reordered() {
      const reviewed = dispatcher.reviewed()
      run()
      await reviewed
    },
    /** Call when this replica has changed endpoints. */
    changed() {
      dispatcher.reviewEndpoints()
      run()
    },
    /** See `Dispatcher`. */
    async drained(endpointId: string) {
      const drained = dispatcher.drained(endpointId)
      run()
      await drained
    },
    lapsed: dispatcher.lapsed,
    unwritten: dispatcher.unwritten,
    /** Stops sending: begins no new attempts, ends the running ones by `interrupt`, and stores their results. */
    async stop(interrupt: () => Promise<void>) {
      await worker.stop()
      // Stop the dispatcher before the interrupt. Otherwise each attempt that ends would begin the next one.
      const settled = dispatcher.stop()
      await interrupt()
      await settled
      // Cancel the timer after the last round, which may have set it.
      wakeup.cancel()
    },
  }
}

/** Wakes the dispatcher. Parts that are created before the dispatcher can use this. */
interface DispatchSignal {
  /** Call when there is something to deliver. */
  wake(): void
  /** Connects the dispatcher. Earlier calls of `wake` are not needed, because the dispatcher looks at everything when it starts. */
  connect(dispatcher: Pick<DispatchSignal, 'wake'>): void
}

export function createDispatchSignal(): DispatchSignal {
  let connected: Pick<DispatchSignal, 'wake'> | undefined
  return {
    wake: () => connected?.wake(),
    connect(dispatcher) {
      connected = dispatcher
    },
  }
}
