import { setImmediate as nextTurn } from 'node:timers/promises'
import { createOperationQueries } from '../console/audit/operations.routes.ts'
import { redactedConfig } from '../console/cli/redacted-config.ts'
import { createOverview, createReadTraffic, type Overview } from '../console/overview/overview.ts'
import { createImportWatches, createParcelCommands } from '../console/parcels/parcel-commands.ts'
import { createParcelQueries } from '../console/parcels/parcel-queries.ts'
import { createFormIds, createGiveOnce } from '../console/portal/form.ts'
import { createLiveLook, createLiveStreams, type LiveLookPorts, type LiveStreamsPorts } from '../console/portal/live/live-streams.ts'
import type { PortalSettings } from '../console/portal/portal.ts'
import { createSessions } from '../console/portal/session.ts'
import type { openConcerns, Reporting } from '../console/reporting/reporting.ts'
import { createManageSecrets } from '../console/secrets/manage-secrets.ts'
import type { Config } from '../core/config/config.ts'
import type { DiskRoom } from '../core/domain/admin/disk-room.ts'
import { AppError } from '../core/domain/errors.ts'
import { createFeedTail, createFollowFeed } from '../core/flow/delivery/feed-tail.ts'
import { createUpstream } from '../core/flow/polling/upstream.ts'
import type { ReloadConfig } from '../core/flow/ports.ts'
import { createCountFailure, createPerMinute, createVisitorOf } from '../core/http/server/authorize.ts'
import { createAddressOf, createIsFromProxy } from '../core/http/server/request-headers.ts'
import { nameKey } from '../core/ops/vault.ts'
import { createFeedSignal, createTickLimit } from '../core/runtime/feed-signal.ts'
import { startRepeating } from '../core/runtime/schedule.ts'
import type { Capabilities } from '../core/wiring/capabilities.ts'
import { otherClocksOf } from '../core/wiring/carrier.ts'
import { SESSION_IDLE_MS } from '../core/wiring/open-history.ts'
import type { Relay } from '../core/wiring/relay.ts'
import { REPLICA } from '../core/wiring/replica-name.ts'
import { createLookBack } from '../insight/as-of/create-look-back.ts'
import { createManageOrders } from '../insight/order/manage-orders.ts'
import { createManageWatchdogs, type ManageWatchdogs } from '../insight/watchdogs/manage-watchdogs.ts'
import { readApiDocument, readDocs, readPortalAsset, VERSION } from '../package-files.ts'
import { createManageErasures } from '../upkeep/erasure/manage-erasures.ts'
import { createManageInbox } from '../upkeep/inbox/manage-inbox.ts'
import { createManageJobs } from '../upkeep/jobs/manage-jobs.ts'
import { filesLeftAt, storesLeftBeside } from '../upkeep/moving/sqlite-move-mark.ts'
import { listLeftStores } from '../upkeep/moving/store-moves.rows.ts'
import { createManageRebuild } from '../upkeep/rebuild/rebuild.routes.ts'
import { createListRefusals } from '../upkeep/refusals/kept-refusals.ts'
import { createReplayMany } from '../upkeep/replay/manage-replays.ts'
import { createManageRetention } from '../upkeep/retention/manage-retention.ts'
import { createInternalListener, type InternalOptions } from './internal-listener.ts'

/** One turn of the event loop writes to this many followers of the feed, which takes about a millisecond. */
const FOLLOWERS_AT_ONCE = 25

type AnswerParts = Pick<Relay, 'reads' | 'write' | 'clock' | 'carrier' | 'receiver' | 'replicas' | 'log' | 'reprocessed'>
type ShownParts = Pick<Relay, 'unstored' | 'shared' | 'disk' | 'path' | 'refused' | 'backups' | 'restores' | 'meter'>
type OperatorParts = Pick<Relay, 'operator' | 'duties' | 'reports'>
type KeyParts = Pick<Relay, 'authenticate' | 'sessions' | 'keyring' | 'settings' | 'tombstoneKey' | 'vault' | 'atRest' | 'commitSignal'>
type Parts = AnswerParts & ShownParts & OperatorParts & KeyParts & Capabilities & { readonly reporting: Reporting }

interface InternalApiPorts extends Pick<InternalOptions, 'check' | 'moves'> {
  readonly concerns: ReturnType<typeof openConcerns>
  /** Reloads the config; null: the config does not come from a file. */
  readonly reloadConfig: ReloadConfig | null
}

/** Assembles the internal listener's API. */
export async function openInternalApi(config: Config, parts: Parts, { concerns, reloadConfig, ...ports }: InternalApiPorts) {
  const { reads, clock, history, delivery, reporting, settings, atRest } = parts
  const feedSignal = createFeedSignal()
  parts.commitSignal.subscribe({ committed: () => feedSignal.tell(), failed: () => undefined })
  const tail = createFeedTail({ reads, gaps: parts.restores, yieldToOthers: () => nextTurn() })
  const addressOf = createAddressOf(config.listen.internal.trustProxy)
  const { refusedSenders } = parts.receiver.verbs
  const given = { ...parts, refusedSenders, work: delivery.reviewAll, yieldToOthers: () => nextTurn(), version: VERSION }
  const manageWatchdogs = createManageWatchdogs({ ...given, rules: () => ({ rules: settings().watchdogs ?? [], zone: settings().zone }) })
  const overview = overviewOf(config, { ...parts, ...manageWatchdogs }, concerns)
  const listener = await createInternalListener({
    ...delivery,
    ...ports,
    log: parts.log,
    authenticate: parts.authenticate,
    serve: history.serve,
    followFeed: createFollowFeed({ tail, signal: feedSignal, clock, spread: createTickLimit(FOLLOWERS_AT_ONCE) }),
    feedFollowersMax: config.limits.feedFollowers,
    manageInbox: createManageInbox({ ...given, onCommitted: parts.reprocessed }),
    refusals: createListRefusals(given),
    replayMany: createReplayMany({ ...given, ...parts.duties, review: delivery.review }),
    manageRebuild: createManageRebuild({ ...given, counts: reporting.counts }),
    manageBackups: parts.backups,
    manageRetention: createManageRetention({ ...given, retention: () => settings().retention }),
    manageSecrets: createManageSecrets(
      { ...given, firstKey: () => nameKey(atRest.keys.first()) },
      { tokenLifetimeMs: Math.max(config.token.lifetimeMs, SESSION_IDLE_MS) },
    ),
    operations: createOperationQueries(given),
    listReplicas: parts.replicas.list,
    manageJobs: createManageJobs(given),
    enableOperator: parts.operator.enable,
    testOperator: parts.operator.test,
    manageErasures: manageErasuresOf(parts, () => {
      tail.forget()
      feedSignal.tell()
      delivery.review()
    }),
    reports: parts.reports,
    manageOrders: createManageOrders({ ...given, told: feedSignal.tell }),
    manageWatchdogs,
    manageParcels: createParcelCommands({
      ...given,
      ...history,
      fetchUnknown: history.serve.fetchUnknown,
      underWay: parts.polling.underWay,
    }),
    lookAtParcels: createParcelQueries(given),
    lookBack: createLookBack({ ...given, languages: () => settings().upstream.languages }),
    upstream: createUpstream(given),
    watchList: createImportWatches({ ...given, told: feedSignal.tell }),
    addressOf,
    visitorOf: createVisitorOf(config.limits.failuresPerMinute, addressOf),
    countFailure: createCountFailure(createPerMinute(config.limits.failuresPerMinute), addressOf),
    portal: portalOf(config, parts, { overview, tail, isOver: feedSignal.isClosed }),
    reloadConfig: reloadConfig ?? refuseReload,
    replica: REPLICA.name,
    readiness: reporting.readiness.read,
    metrics: reporting.metrics.render,
    readDocument: readApiDocument,
    readDocs,
  })
  return { listener, feedSignal, forgetFeed: tail.forget }
}

function portalOf(
  { listen: { internal } }: Config,
  { reads, clock, log, sessions, keyring, settings, delivery }: Parts,
  { overview, tail, isOver }: Pick<LiveLookPorts, 'tail'> & Pick<LiveStreamsPorts, 'isOver'> & { readonly overview: Overview },
): InternalOptions['portal'] {
  const shown = () => portalSettings(settings())
  const isFromProxy = createIsFromProxy(internal.trustProxy)
  return {
    config: () => redactedConfig(settings()),
    overview,
    live: createLiveStreams({ look: createLiveLook({ overview, tail, reads, clock }), repeat: startRepeating, isOver, log }),
    settings: shown,
    sessions: createSessions({ authenticate: sessions, relayId: delivery.relayId, settings: shown, isFromProxy }),
    formIds: createFormIds(keyring),
    giveOnce: createGiveOnce({ reads, clock }),
    readAsset: readPortalAsset,
    version: VERSION,
    clock,
  }
}

function overviewOf({ limits, webhook }: Config, parts: Parts & Pick<ManageWatchdogs, 'stalled'>, concerns: InternalApiPorts['concerns']) {
  const { receiver, replicas, refused, backups, reporting } = parts
  return createOverview({
    ...parts,
    concerns,
    counts: reporting.counts,
    otherClocks: () => otherClocksOf(parts),
    readiness: reporting.readiness.read,
    disk: () => diskRoomOf(parts, limits.freeSpaceBytesMin),
    readTraffic: createReadTraffic(parts),
    listReplicas: replicas.list,
    backups: backups.state,
    refused: refused.list,
    webhook: async () => ({ path: webhook.path, misdirected: await receiver.verbs.misdirected() }),
  })
}

async function refuseReload(): Promise<never> {
  throw new AppError('not_reloadable', 'This relay was not started from a config file, so there is nothing to reload.')
}

/** @param forget called when the store has erased parcels whose events may be in memory */
function manageErasuresOf({ write, clock, reads, path, shared, backups, tombstoneKey, meter }: Parts, forget: () => void) {
  const listLeft = async () => {
    const moved = (await listLeftStores(reads.session)).map(({ name }) => name)
    return [...(shared === null ? storesLeftBeside(path) : []), ...moved.flatMap(filesLeftAt)]
  }
  const { mayHold: listBackups } = backups
  return createManageErasures({
    write,
    clock,
    key: tombstoneKey,
    listBackups,
    listLeftStores: listLeft,
    forget,
    meter,
    relayId: write.relayId,
  })
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
