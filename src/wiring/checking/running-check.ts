import { setTimeout as pause } from 'node:timers/promises'
import type { RemoteCarrier } from '../../carrier/call/carrier-client.ts'
import type { Config } from '../../config/config.ts'
import { failed, ok } from '../../domain/admin/check.ts'
import { readableReason } from '../../domain/admin/problems/explain-problem.ts'
import type { ManageBackups } from '../../flow/admin/backups/manage-backups.ts'
import { type Check, createCheck, type Probe } from '../../flow/admin/check.ts'
import type { Readiness } from '../../flow/admin/overview/readiness.ts'
import type { EndpointKeys } from '../../flow/delivery/endpoint-keys.ts'
import { languagesOf } from '../carrier.ts'
import type { Delivery } from '../delivery/delivery.ts'
import { REPLICA } from '../replicas.ts'
import type { Storage } from '../storage/opened-storage.ts'
import { backupProbe } from './backup-probe.ts'
import { carrierProbe } from './carrier-probe.ts'
import { configProbes } from './config-probes.ts'
import { endpointProbes } from './endpoint-probes.ts'
import { pushProbe } from './push-probe.ts'
import { diskProbe, erasureProbe, filesProbe, judgeAtRestKeys, retentionProbe } from './store-probes.ts'

export interface RunningCheckPorts {
  readonly storage: Storage
  readonly carrier: RemoteCarrier
  readonly delivery: Delivery
  readonly endpointKeys: EndpointKeys
  /** Says why the key file cannot be used; null: it can, or is not needed. */
  readonly keyFault: () => string | null
  readonly readiness: () => Promise<Readiness>
  readonly backups: Pick<ManageBackups, 'list'>
  /** The config in effect. */
  readonly settings: () => Config
  /** Returns the address of the public listener, with the port that it really has. */
  readonly publicUrl: () => string
}

/** Makes the check of a running relay. It uses the store, the carrier's client and the endpoints that the relay has open. */
export function openRunningCheck(ports: RunningCheckPorts): Check {
  const { storage, carrier, delivery, settings } = ports
  const probes = async (): Promise<readonly Probe[]> => {
    const config = settings()
    return [
      { name: 'relay', subject: null, look: async () => ok(`Version ${REPLICA.version} runs as ${REPLICA.name}.`) },
      ...configProbes(config, storage.clock),
      { name: 'keys', subject: 'secrets.atRestKeys', look: async () => judgeAtRestKeys(config, await lostKeys(ports), ports.keyFault()) },
      { name: 'store', subject: null, look: () => lookAtStore(ports) },
      diskProbe(config, async () => {
        await storage.disk.check()
        return storage.disk.state().freeBytes
      }),
      filesProbe(config.store.engine === 'sqlite' ? storage.path : null),
      carrierProbe(carrier, {
        language: languagesOf(config)[0],
        known: async () => (await storage.reads.answeredParcels({ orEver: true }))[0] ?? null,
      }),
      pushProbe(() => ({ publicUrl: ports.publicUrl(), path: config.webhook.path, key: firstKey(config) })),
      retentionProbe(config, async () => (await storage.reads.retentionState()).last, storage.clock),
      erasureProbe(config.store.engine === 'sqlite' ? storage.path : null),
      backupProbe(config, ports.backups, storage.clock),
      ...endpointProbes(await delivery.connections.list(), delivery.connections.make),
    ]
  }
  return createCheck({ probes, pause: (ms) => pause(ms, undefined, { ref: false }), monotonic: storage.clock.monotonic })
}

/** A key file that cannot be used would end this look with an error, and is told as such. */
async function lostKeys({ endpointKeys, keyFault }: RunningCheckPorts) {
  return keyFault() === null ? await endpointKeys.check() : null
}

async function lookAtStore({ readiness, storage }: Pick<RunningCheckPorts, 'readiness' | 'storage'>) {
  // Check the disk now. Otherwise a deleted file of the store is noticed only at the next regular check.
  await storage.disk.check()
  const { ready, reasons } = await readiness()
  return ready ? ok(`${storage.path} is open, and takes pushes.`) : failed(`${reasons.map(readableReason).join('; ')}.`)
}

function firstKey({ webhook }: Config): string {
  return webhook.sharedKeys[0]?.reveal() ?? ''
}
