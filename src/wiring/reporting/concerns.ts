import { judgeOpenFiles, type Verdict } from '../../domain/admin/check.ts'
import type { StorageState } from '../../domain/admin/erasure.ts'
import { localConcerns } from '../../domain/admin/problems/concern.ts'
import { type ConcernsPorts, createConcerns } from '../../flow/admin/overview/concerns.ts'
import { readStorageState } from '../../store/sqlite/clean-storage.ts'
import { judgeBackupsOf } from '../checking/backup-probe.ts'
import { openFilesLimit } from '../checking/config-probes.ts'
import { judgeAtRestKeys } from '../checking/store-probes.ts'
import type { Relay } from '../relay.ts'
import { LOG_BYTES_WARN } from '../storage/storage.ts'

type Parts = Pick<Relay, 'reads' | 'clock' | 'disk' | 'replicas' | 'carrier' | 'certificates' | 'isQuiet'>
type JudgedParts = Pick<Relay, 'atRest' | 'endpointKeys' | 'backups' | 'settings' | 'path' | 'shared'>

/** Assembles what finds the concerns (`domain/admin/problems/concern.ts`). It judges as `check` does, but asks nobody. */
export function openConcerns(
  parts: Parts & JudgedParts,
  { failedReload, undelivered }: Pick<ConcernsPorts, 'failedReload' | 'undelivered'>,
) {
  const { reads, clock, disk, replicas, carrier, certificates, isQuiet } = parts
  const { atRest, endpointKeys, backups, settings, path, shared } = parts
  const keys = async (): Promise<Verdict> => {
    const fault = atRest.fault()
    return judgeAtRestKeys(settings(), fault === null ? await endpointKeys.check() : null, fault)
  }
  const certificatesNow = () => [
    ...certificates.shown().map(({ listener, untilMs }) => ({ shownBy: `${listener} listener`, endpoint: null, untilMs })),
    ...certificates.clients().map(({ endpoint, untilMs }) => ({ shownBy: `relay at ${endpoint}`, endpoint, untilMs })),
  ]
  replicas.tell(() =>
    localConcerns({ certificates: certificatesNow(), failedReload: failedReload(), carrierAheadMs: carrier.aheadMs() }, clock.now()),
  )
  return createConcerns({
    reads,
    clock,
    carrierAheadMs: carrier.aheadMs,
    failedReload,
    undelivered,
    replicaId: replicas.id,
    isQuiet,
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
