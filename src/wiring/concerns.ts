import type { RemoteCarrier } from '../carrier/call/carrier-client.ts'
import type { Config } from '../config/config.ts'
import { judgeOpenFiles, type Verdict } from '../domain/admin/check.ts'
import type { StorageState } from '../domain/admin/erasure.ts'
import { type ConcernFacts, localConcerns } from '../domain/admin/problems/concern.ts'
import type { ManageBackups } from '../flow/admin/backups/manage-backups.ts'
import { createConcerns } from '../flow/admin/overview/concerns.ts'
import type { EndpointKeys } from '../flow/delivery/endpoint-keys.ts'
import { readStorageState } from '../store/sqlite/clean-storage.ts'
import type { AtRest } from './at-rest-keys.ts'
import type { Certificates } from './certificates.ts'
import { judgeBackupsOf } from './checking/backup-probe.ts'
import { openFilesLimit } from './checking/config-probes.ts'
import { judgeAtRestKeys } from './checking/store-probes.ts'
import type { Storage } from './storage/opened-storage.ts'
import { LOG_BYTES_WARN } from './storage/storage.ts'

export interface ConcernsOptions {
  readonly storage: Storage
  readonly carrier: Pick<RemoteCarrier, 'aheadMs'>
  readonly certificates: Pick<Certificates, 'shown' | 'clients'>
  readonly atRest: Pick<AtRest, 'fault'>
  readonly endpointKeys: Pick<EndpointKeys, 'check'>
  readonly backups: Pick<ManageBackups, 'list'>
  /** The settings in effect. */
  readonly settings: () => Config
  /** Whether nothing is polled by schedule at a time. */
  readonly isQuiet: (nowMs: number) => boolean
  readonly failedReload: () => ConcernFacts['failedReload']
  readonly undelivered: () => ConcernFacts['undelivered']
}

/** Assembles what finds the concerns (`domain/admin/problems/concern.ts`). It judges as `check` does, but asks nobody. */
export function openConcerns({ storage, carrier, certificates, atRest, endpointKeys, backups, settings, ...options }: ConcernsOptions) {
  const { clock, reads, disk, path, shared, replicas } = storage
  const keys = async (): Promise<Verdict> => {
    const fault = atRest.fault()
    return judgeAtRestKeys(settings(), fault === null ? await endpointKeys.check() : null, fault)
  }
  const certificatesNow = () => [
    ...certificates.shown().map(({ listener, untilMs }) => ({ shownBy: `${listener} listener`, endpoint: null, untilMs })),
    ...certificates.clients().map(({ endpoint, untilMs }) => ({ shownBy: `relay at ${endpoint}`, endpoint, untilMs })),
  ]
  const { failedReload } = options
  replicas.tell(() =>
    localConcerns({ certificates: certificatesNow(), failedReload: failedReload(), carrierAheadMs: carrier.aheadMs() }, clock.now()),
  )
  return createConcerns({
    reads,
    clock,
    carrierAheadMs: carrier.aheadMs,
    failedReload,
    undelivered: options.undelivered,
    replicaId: replicas.id,
    isQuiet: options.isQuiet,
    wal: () => ({ bytes: disk.state().logBytes, bytesWarn: LOG_BYTES_WARN }),
    certificates: certificatesNow,
    look: async () => ({
      keys: await keys(),
      openFiles: judgeOpenFiles(openFilesLimit(), settings().limits.connections),
      backups: await judgeBackupsOf(settings(), backups, clock),
      storage: shared === null ? storageState(path) : CLEAN,
    }),
  })
}

const CLEAN: StorageState = { state: 'clean' }

/** That the file cannot be read is told as a store that is not ready. */
function storageState(path: string): StorageState {
  try {
    return readStorageState(path)
  } catch {
    return CLEAN
  }
}
