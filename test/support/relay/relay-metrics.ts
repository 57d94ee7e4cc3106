import type { RestoreRecord } from '../../../src/core/domain/admin/restore.ts'
import { createMetrics, type MetricsPorts } from '../../../src/core/ops/metrics.ts'
import type { Session } from '../../../src/core/store/engine.ts'
import { registerBackups } from '../../../src/upkeep/backups/backup.metrics.ts'
import { registerRestores } from '../../../src/upkeep/restore/restore.metrics.ts'
import { registerRetention } from '../../../src/upkeep/retention/retention.metrics.ts'

const GAUGES: Awaited<ReturnType<MetricsPorts['gauges']>> = {
  commitQueue: 0,
  carrierQueue: 0,
  carrierCallsToday: 0,
  carrierCallsPerDay: 50_000,
  carrierResting: 0,
  pollingQuiet: 0,
  carrierCredentialsRefused: 0,
  pushesHealthy: 1,
  pushesSilent: 0,
  pushesRefused: 0,
  parcels: 0,
  watched: 0,
  overdue: 0,
  quarantined: 0,
  freeBytes: 1e12,
  freeBytesMin: 268_435_456,
  logBytes: 0,
  logBytesWarn: 268_435_456,
}

export const DELIVERING = { failing: 0, disabled: 0, untried: 0, delivering: 1 }

const NO_ROWS: Session = { all: async () => [], run: async () => ({ rows: 0 }), enqueueWrite: () => undefined }
const BACKUPS = { state: () => ({ last: { name: 'a', atMs: 1, bytes: 1 }, failing: null }), failures: () => 0, skipped: () => 0 }

type Given = Partial<MetricsPorts> & { readonly restores?: readonly RestoreRecord[] }

/** Returns the metrics of a relay in which nothing is wrong, except for what is given. */
export function metricsWith({ restores = [], ...ports }: Given = {}, gauges: Partial<typeof GAUGES> = {}) {
  return createMetrics('1.0.0', {
    clockDoubt: async () => null,
    keys: () => 1,
    gauges: async () => ({ ...GAUGES, ...gauges }),
    endpoints: async () => [{ name: 'shop', waiting: 0, oldestWaitingSeconds: 0, dead: 0, conditions: DELIVERING }],
    certificates: () => [{ listener: 'public', untilMs: 1 }],
    clientCertificates: () => [{ endpoint: 'shop', untilMs: 1 }],
    secrets: async () => ({ upToDate: 1, outdated: 0 }),
    offered: [
      (registry) => registerBackups(registry, { backups: BACKUPS, clock: { now: () => 2 } }),
      (registry) => registerRestores(registry, { restores }),
      (registry) => registerRetention(registry, { reads: { session: NO_ROWS } }),
    ],
    replicas: async () => ({ all: [{ id: 1, roles: ['poller', 'janitor'] }], id: 1 }),
    ...ports,
  })
}
