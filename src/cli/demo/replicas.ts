import { randomBytes } from 'node:crypto'
import type { Config } from '../../config/config.ts'
import { DEMO_CONFIG } from '../../package-files.ts'
import { startBalancer } from './balancer.ts'
import { startPostgres } from './postgres/throwaway-server.ts'
import type { DemoRelays } from './replica.ts'
import { startReplica } from './replica-process.ts'

export interface ReplicasOptions {
  /** The folder in which the replicas' config files are written. */
  readonly folder: string
  /** The ports of the replicas' internal listeners, one for each replica. */
  readonly internalPorts: readonly number[]
  readonly carrierUrl: string
  readonly subscriberUrl: string
  readonly onCallUrl: string
  /** Called with the replicas' warnings and errors, and when a replica ends. */
  readonly onTrouble: (message: string) => void
}

/** Starts replicas, each in a separate process, behind a load balancer. They share the database of a new PostgreSQL server. */
export async function startReplicas(config: Config, options: ReplicasOptions): Promise<DemoRelays> {
  const { listen, webhook } = config
  const { folder, internalPorts, carrierUrl, subscriberUrl, onCallUrl, onTrouble } = options
  const server = await startPostgres()
  const shared = [
    [['store'], server.url()],
    [['secrets', 'atRestKeys'], [randomBytes(32).toString('base64')]],
    [['upstream', 'baseUrl'], carrierUrl],
    [['endpoints', 0, 'url'], subscriberUrl],
    [['operator', 'url'], onCallUrl],
    [['listen', 'public', 'port'], 0],
  ] as const
  const replicas = await Promise.all(
    internalPorts.map((port, at) =>
      startReplica({
        name: `replica ${at + 1}`,
        folder,
        configFile: DEMO_CONFIG,
        settings: [...shared, [['listen', 'internal', 'port'], port]],
        onTrouble,
      }),
    ),
  )
  for (const { name, died } of replicas)
    void died.then(() => onTrouble(`${name} has ended; within six seconds the other replica takes over its roles`))
  const balancer = await startBalancer(
    listen.public.host,
    listen.public.port,
    replicas.map(({ publicUrl }) => publicUrl),
  )
  return {
    replicas,
    webhookUrl: `${balancer.url}${webhook.path}`,
    store: server.url(),
    async stop() {
      await balancer.stop()
      await Promise.all(replicas.map((replica) => replica.stop()))
      await server[Symbol.asyncDispose]()
    },
  }
}
