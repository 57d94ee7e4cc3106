import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RemoteCarrier } from '../carrier/call/carrier-client.ts'
import type { Config } from '../config/config.ts'
import { redactedConfig } from '../config/redact.ts'
import type { DiskRoom } from '../domain/admin/disk-room.ts'
import type { RestoreRecord } from '../domain/admin/restore.ts'
import { AppError } from '../domain/errors.ts'
import type { ManageBackups } from '../flow/admin/backups/manage-backups.ts'
import type { Check } from '../flow/admin/check.ts'
import { createManageErasures } from '../flow/admin/erasure/manage-erasures.ts'
import type { TombstoneKeyKeeper } from '../flow/admin/erasure/tombstone-key.ts'
import { createGiveOnce } from '../flow/admin/give-once.ts'
import { createManageInbox } from '../flow/admin/inbox/manage-inbox.ts'
import { createManageRebuild } from '../flow/admin/jobs/manage-rebuild.ts'
import type { ManageSecrets } from '../flow/admin/manage-secrets.ts'
import type { ManageMoves } from '../flow/admin/moving/manage-moves.ts'
import { createLiveLook } from '../flow/admin/overview/live-look.ts'
import { createOperationQueries } from '../flow/admin/overview/operation-queries.ts'
import { createOverview } from '../flow/admin/overview/overview.ts'
import { createReadTraffic } from '../flow/admin/overview/traffic.ts'
import { createImportWatches } from '../flow/admin/parcels/import-watches.ts'
import { createParcelCommands } from '../flow/admin/parcels/parcel-commands.ts'
import { createParcelQueries } from '../flow/admin/parcels/parcel-queries.ts'
import type { ReloadConfig } from '../flow/admin/reload-config.ts'
import { createManageRetention } from '../flow/admin/retention/manage-retention.ts'
import type { Authenticate } from '../flow/admin/tokens/authenticate.ts'
import type { TokenKeyring } from '../flow/admin/tokens/token-keyring.ts'
import type { Unstored } from '../flow/admin/unstored.ts'
import { createFeedTail, type FeedTail } from '../flow/delivery/feed-tail.ts'
import { createFollowFeed } from '../flow/delivery/follow-feed.ts'
import { commitStatsOf } from '../flow/history/commit-stats.ts'
import type { PollsUnderWay } from '../flow/polling/polls-under-way.ts'
import { createUpstream } from '../flow/polling/upstream.ts'
import type { Log } from '../flow/ports.ts'
import { createFormIds } from '../http/portal/form-ids.ts'
import { createLiveStreams } from '../http/portal/live/live-streams.ts'
import type { PortalSettings } from '../http/portal/portal.ts'
import { createSessions } from '../http/portal/session.ts'
import { createAddressOf, createIsFromProxy } from '../http/server/client-address.ts'
import { createCountFailure, createVisitorOf } from '../http/server/failures.ts'
import { createInternalListener } from '../http/server/internal.ts'
import { createPerMinute } from '../http/server/per-minute.ts'
import { readApiDocument, readDocs, readPortalAsset, VERSION } from '../package-files.ts'
import { createFeedSignal } from '../runtime/feed-signal.ts'
import { startRepeating } from '../runtime/repeating.ts'
import { createTickLimit } from '../runtime/tick-limit.ts'
import { filesLeftAt, storesLeftBeside } from '../store/sqlite/left-stores.ts'
import type { openConcerns } from './concerns.ts'
import type { Delivery } from './delivery/delivery.ts'
import type { History } from './history.ts'
import { otherClocksOf } from './other-clocks.ts'
import type { CommitSignal } from './recording.ts'
import { REPLICA } from './replicas.ts'
import type { openReporting } from './reporting.ts'
import type { Storage } from './storage/opened-storage.ts'

/** One turn of the event loop writes to this many followers of the feed, which takes about a millisecond. */
const FOLLOWERS_AT_ONCE = 25

export interface InternalApiPorts {
  readonly storage: Storage
  readonly carrier: RemoteCarrier
  readonly commitSignal: CommitSignal
  readonly history: History
  readonly authenticate: Authenticate
  readonly manageSecrets: ManageSecrets
  readonly underWay: PollsUnderWay
  readonly delivery: Delivery
  readonly reporting: ReturnType<typeof openReporting>
  readonly moves: ManageMoves
  readonly backups: ManageBackups
  readonly restores: readonly RestoreRecord[]
  readonly check: Check
  readonly tombstoneKey: TombstoneKeyKeeper
  readonly concerns: ReturnType<typeof openConcerns>
  readonly unstored: Unstored
  /** Reloads the config; null: the config does not come from a file. */
  readonly reloadConfig: ReloadConfig | null
  readonly portal: {
    readonly sessions: Authenticate
    /** The keys of tokens, which also sign the ids of forms. */
    readonly keyring: TokenKeyring
    /** The settings in effect. */
    readonly settings: () => Config
    readonly relayId: string
  }
  readonly log: Log
}

/** Assembles the internal listener's API. */
export function openInternalApi(config: Config, ports: InternalApiPorts) {
  const { storage, carrier, commitSignal, history, authenticate, delivery, reporting, log } = ports
  const { clock, reads, write } = storage
  const feedSignal = createFeedSignal()
  commitSignal.subscribe({ committed: () => feedSignal.tell(), failed: () => undefined })
  const tail = createFeedTail({ reads, gaps: ports.restores, yieldToOthers: () => nextTurn() })
  const overview = overviewOf(config, ports)
  const look = createLiveLook({ overview, tail, reads, clock })
  const addressOf = createAddressOf(config.listen.internal.trustProxy)
  const listener = createInternalListener({
    log,
    authenticate,
    serve: history.serve,
    followFeed: createFollowFeed({
      tail,
      signal: feedSignal,
      clock,
      spread: createTickLimit(FOLLOWERS_AT_ONCE),
    }),
    feedFollowersMax: config.limits.feedFollowers,
    manageEndpoints: delivery.manageEndpoints,
    manageDeliveries: delivery.manageDeliveries,
    testOperator: delivery.testOperator,
    enableOperator: delivery.enableOperator,
    manageInbox: createManageInbox({
      write,
      reads,
      clock,
      onCommitted: (report) => commitSignal.committed('pushes', commitStatsOf(report)),
      work: delivery.reviewAll,
      refusedSenders: storage.receiver.verbs.refusedSenders,
    }),
    manageJobs: delivery.manageJobs,
    moves: ports.moves,
    check: ports.check,
    manageRebuild: createManageRebuild({ write, reads, counts: reporting.counts, clock, work: delivery.reviewAll }),
    manageSecrets: ports.manageSecrets,
    manageBackups: ports.backups,
    manageRetention: manageRetentionOf(ports),
    operations: createOperationQueries({ reads }),
    listReplicas: storage.replicas.list,
    manageErasures: manageErasuresOf(ports, { tail, feedSignal }),
    manageParcels: manageParcelsOf(ports),
    lookAtParcels: createParcelQueries({ reads, write, clock }),
    upstream: createUpstream({ carrier, write, version: VERSION, refusedSenders: storage.receiver.verbs.refusedSenders }),
    watchList: createImportWatches({ write, clock }),
    addressOf,
    visitorOf: createVisitorOf(config.limits.failuresPerMinute, addressOf),
    countFailure: createCountFailure(createPerMinute(config.limits.failuresPerMinute), addressOf),
    portal: {
      config: () => redactedConfig(ports.portal.settings()),
      overview,
      live: createLiveStreams({ look, repeat: startRepeating, isOver: feedSignal.isClosed, log }),
      settings: () => portalSettings(ports.portal.settings()),
      sessions: createSessions({
        authenticate: ports.portal.sessions,
        relayId: ports.portal.relayId,
        settings: () => portalSettings(ports.portal.settings()),
        isFromProxy: createIsFromProxy(config.listen.internal.trustProxy),
      }),
      formIds: createFormIds(ports.portal.keyring),
      giveOnce: createGiveOnce({ reads, clock }),
      readAsset: readPortalAsset,
      version: VERSION,
      clock,
    },
    reloadConfig: ports.reloadConfig ?? refuseReload,
    replica: REPLICA.name,
    readiness: reporting.readiness.read,
    metrics: reporting.metrics.render,
    readDocument: readApiDocument,
    readDocs,
  })
  return { listener, feedSignal, forgetFeed: tail.forget }
}

function overviewOf({ limits, webhook }: Config, { storage, reporting, carrier, backups, concerns, unstored }: InternalApiPorts) {
  const { clock, reads, write } = storage
  return createOverview({
    reads,
    unstored,
    concerns,
    counts: reporting.counts,
    write,
    carrier,
    otherClocks: () => otherClocksOf(storage, carrier),
    readiness: reporting.readiness.read,
    disk: () => diskRoomOf(storage, limits.freeSpaceBytesMin),
    readTraffic: createReadTraffic({ reads, clock }),
    listReplicas: storage.replicas.list,
    backups: backups.state,
    refused: reporting.refused,
    clock,
    webhook: async () => ({ path: webhook.path, misdirected: await storage.receiver.verbs.misdirected() }),
  })
}

async function refuseReload(): Promise<never> {
  throw new AppError('not_reloadable', 'This relay was not started from a config file, so there is nothing to reload.')
}

function manageParcelsOf({ storage, history, underWay }: InternalApiPorts) {
  const { write, clock } = storage
  const { refresh, serve, whyNotAsked } = history
  return createParcelCommands({ write, refresh, fetchUnknown: serve.fetchUnknown, whyNotAsked, underWay, clock })
}

function manageRetentionOf({ storage, delivery, portal }: InternalApiPorts) {
  const { reads, write, clock } = storage
  const retention = () => portal.settings().retention
  return createManageRetention({ reads, write, clock, retention, work: delivery.reviewAll, yieldToOthers: () => nextTurn() })
}

function manageErasuresOf(
  { storage, backups, tombstoneKey, reporting, delivery }: InternalApiPorts,
  { tail, feedSignal }: { readonly tail: FeedTail; readonly feedSignal: { tell(): void } },
) {
  const { write, clock } = storage
  return createManageErasures({
    write,
    clock,
    key: tombstoneKey,
    listBackups: backups.mayHold,
    listLeftStores: () => namesOfLeftStores(storage),
    forget() {
      tail.forget()
      feedSignal.tell()
      delivery.review()
    },
    meter: reporting.meter,
    relayId: write.relayId,
  })
}

async function namesOfLeftStores({ reads, path, shared }: InternalApiPorts['storage']): Promise<readonly string[]> {
  const moved = (await reads.listLeftStores()).map(({ name }) => name)
  return [...(shared === null ? storesLeftBeside(path) : []), ...moved.flatMap(filesLeftAt)]
}

function portalSettings({ portal, listen }: Config): PortalSettings {
  const url = portal.publicUrl === null ? null : new URL(portal.publicUrl)
  return {
    ...portal,
    publicOrigin: url?.origin ?? null,
    prefix: url === null ? '' : url.pathname.replace(/\/+$/, ''),
    isSecure: url === null ? listen.internal.tls !== null : url.protocol === 'https:',
  }
}

/** Returns the room on the disk; null: the store is on a server, or the disk was not measured yet. */
function diskRoomOf({ disk, path }: Pick<Storage, 'disk' | 'path'>, freeBytesMin: number): DiskRoom | null {
  const { freeBytes, diskBytes, storeBytes, logBytes } = disk.state()
  return Number.isFinite(freeBytes) ? { freeBytes, freeBytesMin, totalBytes: diskBytes, storeBytes: storeBytes + logBytes, path } : null
}
