import type { Config } from './config.ts'
import { createDeliverySigner, type DeliverySigner } from './domain/delivery-request.ts'
import type { Endpoint } from './domain/endpoint.ts'
import type { Clock, Log, Meter, WriteSide } from './flow/ports.ts'
import { createRelay } from './flow/relay.ts'
import { createEgressGuard } from './remote/egress-guard.ts'
import { createSender } from './remote/sender.ts'
import { createAlarm } from './run/alarm.ts'
import { startWorker } from './run/worker.ts'

export interface RelayingPorts {
  readonly write: Pick<WriteSide, 'deliveryTurn' | 'syncEndpoints' | 'relayId'>
  readonly meter: Pick<Meter, 'deliveryAttempted'>
  readonly clock: Clock
  readonly log: Log
  /** The ports the relay itself listens on: never an endpoint's. */
  readonly ownPorts: () => readonly number[]
}

export interface Relaying {
  /** There is something new to deliver. */
  wake(): void
  stop(): Promise<void>
}

/** Puts the outbound half together: endpoints from the config, the guard on where they may be, the sender, and the worker that drives it. */
export async function startRelaying(config: Config, ports: RelayingPorts): Promise<Relaying> {
  const { write, clock, log } = ports
  await write.syncEndpoints(config.endpoints.map(presentEndpoint), clock.now())
  const guard = createEgressGuard({ allowNetworks: config.delivery.allowNetworks, ownPorts: ports.ownPorts })
  const sender = createSender({ guard, timeoutMs: config.delivery.timeoutMs, clock })
  const relay = createRelay(
    {
      ...ports,
      sender,
      signerOf: createSigners(config),
      random: Math.random,
      wake: (atMs) => (atMs === null ? worker.wake() : alarm.set(atMs)),
    },
    { relayId: await write.relayId(), claimsMax: config.limits.batch },
  )
  const worker = startWorker(relay.pass, (error) => log.error({ err: error }, 'a pass of the relay failed; it rests until it is woken'))
  const alarm = createAlarm(() => worker.wake(), clock.now)
  worker.wake()
  return {
    wake: () => worker.wake(),
    async stop() {
      alarm.cancel()
      await worker.stop()
      await sender.close()
      await relay.stop()
    },
  }
}

function presentEndpoint(endpoint: Config['endpoints'][number]): Endpoint {
  const { name, url, enabled, signature, filters, backfill, ratePerSecond, concurrency, scheduleMs } = endpoint
  return { id: '', name, url, enabled, signature, filters, backfill, ratePerSecond, concurrency, scheduleMs }
}

/** A signer for each endpoint the config names, made once. */
function createSigners(config: Config): (endpoint: Endpoint) => DeliverySigner | null {
  const signers = new Map(
    config.endpoints.map(({ name, sharedKey, signature }) => [name, createDeliverySigner([sharedKey.reveal()], signature)]),
  )
  return ({ name }) => signers.get(name) ?? null
}
