import type { InternalOptions } from '../../../src/http/server/internal.ts'
import { systemClock } from '../../../src/runtime/system-clock.ts'

const notAsked = () => Promise.reject(new Error('not asked'))

const portal: InternalOptions['portal'] = {
  config: () => ({}),
  overview: { glance: notAsked, read: notAsked },
  live: { hasRoom: () => false, stream: notAsked },
  settings: () => ({ enabled: false, publicOrigin: null, prefix: '', isSecure: false, trustedHeader: null, admins: [] }),
  sessions: { personOf: async () => null, hold: notAsked, logIn: async () => {}, logOut: () => {} },
  readAsset: () => null,
  version: '0.0.0',
  clock: systemClock,
}

/** The parts behind an internal listener, which fail if they are called. A test replaces the parts that it uses. */
export const nothingServed = {
  manageInbox: {
    refusedSenders: notAsked,
    refusals: notAsked,
    list: notAsked,
    find: notAsked,
    reprocess: notAsked,
    quarantined: notAsked,
    reprocessAll: notAsked,
    dismiss: notAsked,
    dismissAll: notAsked,
  },
  manageParcels: { watch: notAsked, unwatch: notAsked, refresh: notAsked },
  manageErasures: { forget: notAsked, forgetList: notAsked },
  lookAtParcels: { list: notAsked, inspect: notAsked },
  watchList: notAsked,
  upstream: { read: notAsked },
  manageEndpoints: {
    list: notAsked,
    search: notAsked,
    states: notAsked,
    find: notAsked,
    add: notAsked,
    change: notAsked,
    rotate: notAsked,
    retry: notAsked,
    remove: notAsked,
    test: notAsked,
  },
  manageDeliveries: {
    list: notAsked,
    find: notAsked,
    replay: notAsked,
    retry: notAsked,
    skip: notAsked,
    replayMany: notAsked,
    listMissing: notAsked,
  },
  testOperator: notAsked,
  operations: { events: notAsked, tallies: notAsked, actions: notAsked },
  check: notAsked,
  reloadConfig: notAsked,
  replica: 'this',
  manageJobs: { list: notAsked, find: notAsked, cancel: notAsked },
  moves: { start: notAsked, progressOf: () => null },
  manageRebuild: { start: notAsked },
  manageSecrets: { count: notAsked, reseal: notAsked, rotateTokens: notAsked },
  manageBackups: { list: notAsked, start: notAsked, progressOf: () => null },
  manageRetention: { view: notAsked, wouldGo: notAsked, start: notAsked },
  portal,
  listReplicas: notAsked,
  readiness: notAsked,
  metrics: notAsked,
  readDocument: notAsked,
  readDocs: notAsked,
} satisfies Partial<InternalOptions>
