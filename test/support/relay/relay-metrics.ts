import { createMetrics, type MetricsPorts } from '../../../src/core/ops/metrics.ts'

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

/** Returns the metrics of a relay in which nothing is wrong, except for what is given. */
export function metricsWith(ports: Partial<MetricsPorts> = {}, gauges: Partial<typeof GAUGES> = {}) {
  return createMetrics('1.0.0', {
    clockDoubt: async () => null,
    keys: () => 1,
    gauges: async () => ({ ...GAUGES, ...gauges }),
    endpoints: async () => [{ name: 'shop', waiting: 0, oldestWaitingSeconds: 0, dead: 0, conditions: DELIVERING }],
    certificates: () => [{ listener: 'public', untilMs: 1 }],
    clientCertificates: () => [{ endpoint: 'shop', untilMs: 1 }],
    secrets: async () => ({ upToDate: 1, outdated: 0 }),
    restores: () => [],
    backups: () => ({ state: { last: { name: 'a', atMs: 1, bytes: 1 }, failing: null }, failures: 0, skipped: 0, nowMs: 2 }),
    retention: async () => ({ pass: null, last: null }),
    replicas: async () => ({ all: [{ id: 1, roles: ['poller', 'janitor'] }], id: 1 }),
    ...ports,
  })
}
