import { setImmediate as nextTurn } from 'node:timers/promises'
import { createLiveLook, type LiveLookPorts } from '../console/overview/live-look.ts'
import { createOperationQueries } from '../console/overview/operation-queries.ts'
import { createOverview, type Overview } from '../console/overview/overview.ts'
import { createReadTraffic } from '../console/overview/traffic.ts'
import { createFormIds } from '../console/portal/form-ids.ts'
import { createGiveOnce } from '../console/portal/give-once.ts'
import { createLiveStreams, type LiveStreamsPorts } from '../console/portal/live/live-streams.ts'
import type { PortalSettings } from '../console/portal/portal.ts'
import { createSessions } from '../console/portal/session.ts'
import type { openConcerns } from '../console/reporting/concerns.ts'
import type { openReporting } from '../console/reporting/reporting.ts'
import type { Config } from '../core/config/config.ts'
import { redactedConfig } from '../core/config/redact.ts'
import type { DiskRoom } from '../core/domain/admin/disk-room.ts'
import { AppError } from '../core/domain/errors.ts'
import { createManageInbox } from '../core/flow/admin/inbox/manage-inbox.ts'
import { createImportWatches } from '../core/flow/admin/parcels/import-watches.ts'
import { createParcelCommands } from '../core/flow/admin/parcels/parcel-commands.ts'
import { createParcelQueries } from '../core/flow/admin/parcels/parcel-queries.ts'
import type { ReloadConfig } from '../core/flow/admin/reload-config.ts'
import { createFeedTail } from '../core/flow/delivery/feed-tail.ts'
import { createFollowFeed } from '../core/flow/delivery/follow-feed.ts'
import { commitStatsOf } from '../core/flow/history/commit-stats.ts'
import type { PollsUnderWay } from '../core/flow/polling/polls-under-way.ts'
import { createUpstream } from '../core/flow/polling/upstream.ts'
import { createAddressOf, createIsFromProxy } from '../core/http/server/client-address.ts'
import { createCountFailure, createVisitorOf } from '../core/http/server/failures.ts'
import { createInternalListener, type InternalOptions } from '../core/http/server/internal.ts'
import { createPerMinute } from '../core/http/server/per-minute.ts'
import { createFeedSignal } from '../core/runtime/feed-signal.ts'
import { startRepeating } from '../core/runtime/repeating.ts'
import { createTickLimit } from '../core/runtime/tick-limit.ts'
import type { Delivery } from '../core/wiring/delivery/delivery.ts'
import type { History } from '../core/wiring/history.ts'
import type { Relay } from '../core/wiring/relay.ts'
import { readApiDocument, readDocs, readPortalAsset, VERSION } from '../package-files.ts'
import { otherClocksOf } from '../server/replicas/other-clocks.ts'
import { REPLICA } from '../server/replicas/replicas.ts'
import type { Check } from '../upkeep/check/manage-check.ts'
import { createManageErasures } from '../upkeep/erasure/manage-erasures.ts'
import type { ManageMoves } from '../upkeep/moving/manage-moves.ts'
import { filesLeftAt, storesLeftBeside } from '../upkeep/moving/sqlite-left-stores.ts'
import { createManageRebuild } from '../upkeep/rebuild/manage-rebuild.ts'
import { createManageRetention } from '../upkeep/retention/manage-retention.ts'
import type { ManageSecrets } from '../upkeep/secrets/manage-secrets.ts'

/** One turn of the event loop writes to this many followers of the feed, which takes about a millisecond. */
const FOLLOWERS_AT_ONCE = 25

type Parts = Pick<Relay, 'write' | 'reads' | 'clock' | 'receiver' | 'replicas' | 'carrier' | 'commitSignal' | 'log'>
type PortalParts = Pick<Relay, 'authenticate' | 'sessions' | 'keyring' | 'settings'>
type OverviewParts = Pick<Relay, 'unstored' | 'shared' | 'disk' | 'path' | 'refused' | 'backups'>
type ErasureParts = Pick<Relay, 'write' | 'clock' | 'reads' | 'path' | 'shared' | 'backups' | 'tombstoneKey' | 'meter'>

export interface InternalApiPorts extends Pick<Relay, 'restores'> {
  readonly history: History
  readonly manageSecrets: ManageSecrets
  readonly underWay: PollsUnderWay
  readonly delivery: Delivery
  readonly reporting: ReturnType<typeof openReporting>
  readonly moves: ManageMoves
  readonly check: Check
  readonly concerns: ReturnType<typeof openConcerns>
  /** Reloads the config; null: the config does not come from a file. */
  readonly reloadConfig: ReloadConfig | null
}

/** Assembles the internal listener's API. */
export function openInternalApi(config: Config, parts: Parts & PortalParts & OverviewParts & ErasureParts, ports: InternalApiPorts) {
  const { write, reads, clock, receiver, replicas, carrier, commitSignal, log, authenticate, settings } = parts
  const { history, delivery, reporting } = ports
  const feedSignal = createFeedSignal()
  commitSignal.subscribe({ committed: () => feedSignal.tell(), failed: () => undefined })
  const tail = createFeedTail({ reads, gaps: ports.restores, yieldToOthers: () => nextTurn() })
  const overview = overviewOf(config, parts, ports)
  const addressOf = createAddressOf(config.listen.internal.trustProxy)
  const { refusedSenders } = receiver.verbs
  const work = delivery.reviewAll
  const listener = createInternalListener({
    ...delivery,
    ...ports,
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
    manageInbox: createManageInbox({
      write,
      reads,
      clock,
      onCommitted: (report) => commitSignal.committed('pushes', commitStatsOf(report)),
      work,
      refusedSenders,
    }),
    manageRebuild: createManageRebuild({ write, reads, counts: reporting.counts, clock, work }),
    manageBackups: parts.backups,
    manageRetention: createManageRetention({
      reads,
      write,
      clock,
      retention: () => settings().retention,
      work,
      yieldToOthers: () => nextTurn(),
    }),
    operations: createOperationQueries({ reads }),
    listReplicas: replicas.list,
    manageErasures: manageErasuresOf(parts, () => {
      tail.forget()
      feedSignal.tell()
      delivery.review()
    }),
    manageParcels: createParcelCommands({ ...history, write, fetchUnknown: history.serve.fetchUnknown, underWay: ports.underWay, clock }),
    lookAtParcels: createParcelQueries({ reads, write, clock, carrier }),
    upstream: createUpstream({ carrier, write, version: VERSION, refusedSenders }),
    watchList: createImportWatches({ write, clock }),
    addressOf,
    visitorOf: createVisitorOf(config.limits.failuresPerMinute, addressOf),
    countFailure: createCountFailure(createPerMinute(config.limits.failuresPerMinute), addressOf),
    portal: portalOf(config, parts, { overview, tail, relayId: delivery.relayId, isOver: feedSignal.isClosed }),
    reloadConfig: ports.reloadConfig ?? refuseReload,
    replica: REPLICA.name,
    readiness: reporting.readiness.read,
    metrics: reporting.metrics.render,
    readDocument: readApiDocument,
    readDocs,
  })
  return { listener, feedSignal, forgetFeed: tail.forget }
}

interface PortalPorts extends Pick<LiveLookPorts, 'tail'>, Pick<LiveStreamsPorts, 'isOver'>, Pick<Delivery, 'relayId'> {
  readonly overview: Overview
}

function portalOf(
  { listen: { internal } }: Config,
  { reads, clock, log, sessions, keyring, settings }: Pick<Relay, 'reads' | 'clock' | 'log' | 'sessions' | 'keyring' | 'settings'>,
  { overview, tail, relayId, isOver }: PortalPorts,
): InternalOptions['portal'] {
  const shown = () => portalSettings(settings())
  const look = createLiveLook({ overview, tail, reads, clock })
  return {
    config: () => redactedConfig(settings()),
    overview,
    live: createLiveStreams({ look, repeat: startRepeating, isOver, log }),
    settings: shown,
    sessions: createSessions({ authenticate: sessions, relayId, settings: shown, isFromProxy: createIsFromProxy(internal.trustProxy) }),
    formIds: createFormIds(keyring),
    giveOnce: createGiveOnce({ reads, clock }),
    readAsset: readPortalAsset,
    version: VERSION,
    clock,
  }
}

function overviewOf(
  { limits, webhook }: Config,
  { write, reads, clock, receiver, replicas, carrier, unstored, shared, disk, path, refused, backups }: Parts & OverviewParts,
  { reporting, concerns }: InternalApiPorts,
) {
  return createOverview({
    reads,
    unstored,
    concerns,
    counts: reporting.counts,
    write,
    carrier,
    otherClocks: () => otherClocksOf({ clock, shared, carrier }),
    readiness: reporting.readiness.read,
    disk: () => diskRoomOf({ disk, path }, limits.freeSpaceBytesMin),
    readTraffic: createReadTraffic({ reads, clock }),
    listReplicas: replicas.list,
    backups: backups.state,
    refused: refused.list,
    clock,
    webhook: async () => ({ path: webhook.path, misdirected: await receiver.verbs.misdirected() }),
  })
}

async function refuseReload(): Promise<never> {
  throw new AppError('not_reloadable', 'This relay was not started from a config file, so there is nothing to reload.')
}

/** @param forget called when the store has erased parcels whose events may be in memory */
function manageErasuresOf({ write, clock, reads, path, shared, backups, tombstoneKey, meter }: ErasureParts, forget: () => void) {
  const listLeftStores = async () => {
    const moved = (await reads.listLeftStores()).map(({ name }) => name)
    return [...(shared === null ? storesLeftBeside(path) : []), ...moved.flatMap(filesLeftAt)]
  }
  const { mayHold: listBackups } = backups
  return createManageErasures({ write, clock, key: tombstoneKey, listBackups, listLeftStores, forget, meter, relayId: write.relayId })
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
function diskRoomOf({ disk, path }: Pick<Relay, 'disk' | 'path'>, freeBytesMin: number): DiskRoom | null {
  const { freeBytes, diskBytes, storeBytes, logBytes } = disk.state()
  return Number.isFinite(freeBytes) ? { freeBytes, freeBytesMin, totalBytes: diskBytes, storeBytes: storeBytes + logBytes, path } : null
}
