import { LOG_BYTES_WARN } from '../../assembly/storage/storage.ts'
import type { Capabilities } from '../../core/wiring/capabilities.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { judgeOpenFiles, type Verdict } from '../../upkeep/check/check.rules.ts'
import { judgeAtRestKeys, judgeBackupsOf, openFilesLimit } from '../../upkeep/check/local-probes.ts'
import { readStorageState } from '../../upkeep/erasure/clean-storage.ts'
import type { StorageState } from '../../upkeep/erasure/erasure.rules.ts'
import { type ConcernsPorts, createConcerns } from '../overview/overview.ts'
import { localConcerns } from '../problems/concern.ts'

type Parts = Pick<Relay, 'reads' | 'clock' | 'disk' | 'replicas' | 'carrier' | 'certificates' | 'isQuiet'>
type JudgedParts = Pick<Relay, 'atRest' | 'endpointKeys' | 'backups' | 'settings' | 'path' | 'shared'> & Pick<Capabilities, 'delivery'>

/** Assembles what finds the concerns (`console/problems/concern.ts`). It judges as `check` does, but asks nobody. */
export function openConcerns(parts: Parts & JudgedParts, failedReload: ConcernsPorts['failedReload']) {
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
    undelivered: parts.delivery.unwritten,
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
