import type { Command } from 'commander'
import type { Registry } from 'prom-client'
import type {} from './console/console-use-cases.ts'
import type { EventDescriptions } from './console/events/operator-events.ts'
import type { SectionsOf } from './console/portal/parcels/parcel.pages.ts'
import type { PagesOf } from './console/portal/portal.ts'
import type { ConcernDescriptions } from './console/problems/concern-kinds.ts'
import type { ProblemsOf } from './console/reporting/reporting.ts'
import type { LoadSections, Section } from './core/config/schema.ts'
import type { Duty } from './core/flow/ports.ts'
import type { Route, WithAuthorize } from './core/http/server/route.ts'
import type { UseCases } from './core/http/use-cases.ts'
import type { Capabilities } from './core/wiring/capabilities.ts'
import type { DutyParts, Relay } from './core/wiring/relay.ts'
import type {} from './insight/insight-use-cases.ts'
import type {} from './server/server-use-cases.ts'
import type {} from './upkeep/upkeep-use-cases.ts'

/** What metrics of wings are read from. */
type MeasuredParts = Pick<Relay, 'reads' | 'clock' | 'backups' | 'restores'>

/**
 * What a folder of a wing offers to the program and to the relay. All of it is loaded only when it is used, so that no command waits for the code of
 * another. The core works without any of them.
 */
interface Offer {
  /** A section of the config. */
  readonly section?: () => Promise<Section>
  /** Commands by name. */
  readonly commands?: Readonly<Record<string, () => Promise<Command>>>
  /** Orders below commands of the console, by the command's name. */
  readonly orders?: Readonly<Record<string, () => Promise<Command>>>
  /** Routes of the internal listener. */
  readonly routes?: () => Promise<readonly Route<UseCases & WithAuthorize>[]>
  /** Which routes of the core or the console the API document lists before these; absent: all of the console's. */
  readonly routesAfter?: 'deliveries' | 'parcels'
  /** Work in the background, begun when the relay has started. */
  readonly duty?: () => Promise<(relay: DutyParts & Capabilities) => Duty>
  /** Metrics: registers them, and returns what reads their values before a scrape. */
  readonly metrics?: () => Promise<(registry: Registry, relay: MeasuredParts) => () => unknown>
  /** Problems of the overview: finds what is wrong. */
  readonly problems?: () => Promise<ProblemsOf>
  /** What is known of the kinds of these problems. */
  readonly problemKinds?: () => Promise<ConcernDescriptions>
  /** Events that operators are notified of: their words and members. */
  readonly events?: () => Promise<EventDescriptions>
  /** Pages of the portal. */
  readonly pages?: () => Promise<PagesOf<UseCases>>
  /** Sections of the portal's page of a parcel. */
  readonly parcelSections?: () => Promise<SectionsOf<UseCases>>
}

const loadServer = async () => (await import('./server/postgres/server-stores.ts')).SERVER_STORES

/** The folders of `upkeep/`, then those of the other wings that have commands, routes or pages besides the console's own. */
export const WINGS: readonly Offer[] = [
  {
    commands: { check: async () => (await import('./upkeep/check/check.command.ts')).checkCommand(loadServer, loadSections) },
    routes: async () => (await import('./upkeep/check/check.routes.ts')).CHECK_ROUTES,
    pages: async () => (await import('./upkeep/check/check.page.ts')).checkPages,
    problems: async () => (await import('./upkeep/check/check.problems.ts')).checkProblems,
    problemKinds: async () => (await import('./upkeep/check/check.problems.ts')).CHECK_KINDS,
  },
  {
    commands: { forget: async () => (await import('./upkeep/erasure/forget.command.ts')).forgetCommand() },
    orders: { secrets: async () => (await import('./upkeep/erasure/give-up-tombstones.command.ts')).giveUpTombstonesCommand(loadServer) },
    routes: async () => (await import('./upkeep/erasure/erasures.routes.ts')).ERASURES_ROUTES,
    pages: async () => (await import('./upkeep/erasure/erase.page.ts')).erasePages,
    problems: async () => (await import('./upkeep/erasure/erasure.problems.ts')).erasureProblems,
    problemKinds: async () => (await import('./upkeep/erasure/erasure.problems.ts')).ERASURE_KINDS,
  },
  {
    commands: { verify: async () => (await import('./upkeep/refusals/verify.command.ts')).verifyCommand(loadSections) },
    routes: async () => (await import('./upkeep/refusals/refusals.routes.ts')).REFUSALS_ROUTES,
    pages: async () => (await import('./upkeep/refusals/refusals.page.ts')).refusalPages,
  },
  {
    commands: { inbox: async () => (await import('./upkeep/inbox/inbox.command.ts')).inboxCommand() },
    routes: async () => (await import('./upkeep/inbox/inbox.routes.ts')).INBOX_ROUTES,
    routesAfter: 'parcels',
    pages: async () => (await import('./upkeep/inbox/inbox.page.ts')).inboxPages,
  },
  {
    commands: { replay: async () => (await import('./upkeep/replay/replay.command.ts')).replayCommand() },
    orders: { deliveries: async () => (await import('./upkeep/replay/replay.command.ts')).replayCommand() },
    routes: async () => (await import('./upkeep/replay/replay.routes.ts')).REPLAY_ROUTES,
    routesAfter: 'deliveries',
    pages: async () => (await import('./upkeep/replay/replay.page.ts')).replayPages,
  },
  {
    routes: async () => (await import('./upkeep/jobs/jobs.routes.ts')).JOBS_ROUTES,
    pages: async () => (await import('./upkeep/jobs/jobs.page.ts')).jobPages,
    duty: async () => (await import('./upkeep/jobs/jobs.duty.ts')).jobsDuty,
    events: async () => (await import('./upkeep/jobs/jobs.routes.ts')).JOB_EVENTS,
  },
  {
    commands: { rebuild: async () => (await import('./upkeep/rebuild/rebuild.command.ts')).rebuildCommand() },
    routes: async () => (await import('./upkeep/rebuild/rebuild.routes.ts')).REBUILD_ROUTES,
  },
  {
    commands: { 'move-store': async () => (await import('./upkeep/moving/move-store.command.ts')).moveStoreCommand(loadServer) },
    routes: async () => (await import('./upkeep/moving/store.routes.ts')).STORE_ROUTES,
  },
  {
    section: async () => (await import('./upkeep/backups/backups.config.ts')).BACKUP_SECTION,
    commands: { backup: async () => (await import('./upkeep/backups/backup.command.ts')).backupCommand() },
    routes: async () => (await import('./upkeep/backups/backups.routes.ts')).BACKUPS_ROUTES,
    pages: async () => (await import('./upkeep/backups/backups.page.ts')).backupPages,
    metrics: async () => (await import('./upkeep/backups/backup.metrics.ts')).registerBackups,
    problems: async () => (await import('./upkeep/backups/backup.problems.ts')).backupProblems,
    problemKinds: async () => (await import('./upkeep/backups/backup.problems.ts')).BACKUP_KINDS,
    events: async () => (await import('./upkeep/backups/backup.problems.ts')).BACKUP_EVENTS,
  },
  {
    commands: { restore: async () => (await import('./upkeep/restore/restore.command.ts')).restoreCommand(loadServer) },
    duty: async () => (await import('./upkeep/restore/restore.duty.ts')).restoreDuty,
    metrics: async () => (await import('./upkeep/restore/restore.metrics.ts')).registerRestores,
    events: async () => (await import('./upkeep/restore/restore.duty.ts')).RESTORE_EVENTS,
  },
  {
    commands: { prune: async () => (await import('./upkeep/retention/prune.command.ts')).pruneCommand() },
    routes: async () => (await import('./upkeep/retention/retention.routes.ts')).RETENTION_ROUTES,
    pages: async () => (await import('./upkeep/retention/retention.page.ts')).retentionPages,
    duty: async () => (await import('./upkeep/retention/retention.duty.ts')).retentionDuty,
    metrics: async () => (await import('./upkeep/retention/retention.metrics.ts')).registerRetention,
    problems: async () => (await import('./upkeep/retention/retention.problems.ts')).retentionProblems,
    problemKinds: async () => (await import('./upkeep/retention/retention.problems.ts')).RETENTION_KINDS,
    events: async () => (await import('./upkeep/retention/retention.problems.ts')).RETENTION_EVENTS,
  },
  {
    routes: async () => (await import('./insight/order/order.routes.ts')).ORDER_ROUTES,
    pages: async () => (await import('./insight/order/order.page.ts')).orderPages,
    parcelSections: async () => (await import('./insight/order/order.page.ts')).orderSections,
    duty: async () => (await import('./insight/order/order.duty.ts')).orderDuty,
  },
  { parcelSections: async () => (await import('./insight/as-of/as-of.page.ts')).asOfSections },
  {
    section: async () => (await import('./insight/watchdogs/watchdogs.config.ts')).WATCHDOGS_SECTION,
    commands: { watchdogs: async () => (await import('./insight/watchdogs/watchdogs.command.ts')).watchdogsCommand() },
    routes: async () => (await import('./insight/watchdogs/watchdogs.routes.ts')).WATCHDOGS_ROUTES,
    duty: async () => (await import('./insight/watchdogs/watchdogs.duty.ts')).watchdogDuty,
    pages: async () => (await import('./insight/watchdogs/watchdogs.page.ts')).watchdogPages,
    parcelSections: async () => (await import('./insight/watchdogs/watchdogs.page.ts')).watchdogSections,
    metrics: async () => (await import('./insight/watchdogs/watchdogs.metrics.ts')).registerWatchdogs,
    problems: async () => (await import('./insight/watchdogs/watchdogs.problems.ts')).watchdogProblems,
    problemKinds: async () => (await import('./insight/watchdogs/watchdogs.problems.ts')).WATCHDOG_KINDS,
    events: async () => (await import('./insight/watchdogs/watchdogs.problems.ts')).WATCHDOG_EVENTS,
  },
  {
    commands: { export: async () => (await import('./insight/export/export.command.ts')).exportCommand() },
  },
  {
    commands: { report: async () => (await import('./insight/report/report.command.ts')).reportCommand() },
    routes: async () => (await import('./insight/report/report.routes.ts')).REPORT_ROUTES,
    pages: async () => (await import('./insight/report/report.page.ts')).reportPages,
  },
  { routes: async () => (await import('./server/replicas/replicas.routes.ts')).REPLICAS_ROUTES },
  {
    commands: {
      demo: async () => (await import('./trial/demo.command.ts')).demoCommand(loadSections),
      sandbox: async () => (await import('./trial/sandbox.command.ts')).sandboxCommand(),
    },
  },
]

/** Loads the sections of the config that the folders offer. */
export const loadSections: LoadSections = async () => await Promise.all(WINGS.flatMap(({ section }) => section?.() ?? []))
