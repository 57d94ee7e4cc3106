import type { Situation } from '../../../src/console/problems/verdict.ts'
import { CARRIER } from '../network/carrier-state.ts'

/** The situation of a relay that works and knows three parcels. */
export const WELL: Situation = {
  notReady: [],
  counts: { parcels: 3, watched: 2, overdue: 0, unknown: 0, quarantined: 0 },
  disk: null,
  diskSinceMs: null,
  lossySinceMs: null,
  unserved: null,
  carrier: CARRIER,
  pushes: {
    health: 'healthy',
    loss: 0,
    lastPushAtMs: 1000,
    restoredAtMs: null,
    missedSincePush: 0,
    silence: null,
    lastSilence: null,
    probation: null,
    newest: { count: 20, misread: 0, areTooMany: false, misreadAtMs: null },
    missed: { count: 0, sinceMs: 0, lastFoundAtMs: null },
  },
  pastSilence: null,
  refused: [],
  missedByHour: [],
  endpoints: [],
  operator: null,
  held: [],
  backlogs: new Map(),
  failures: new Map(),
  replicas: [],
  clockDoubt: null,
  backupFailing: null,
  concerns: [],
  stalled: null,
  webhook: { path: '/webhooks/status', misdirected: [] },
}
