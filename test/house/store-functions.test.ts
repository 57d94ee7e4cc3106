import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync, Visitor } from 'oxc-parser'
import { expect, test } from 'vitest'
import { readModules } from './source-module.ts'

const SOURCES = fileURLToPath(new URL('../../src/', import.meta.url))

/**
 * Functions of the store that are only a part of what a transaction does: an engine locks first, remembers something or works in sets, or
 * `tellSaved` notes the parcel. So a flow calls the verb of the transaction, and only engines and the store itself call the function.
 */
const OF_ENGINES: Readonly<Record<string, readonly string[]>> = {
  'core/store/settings.ts': ['TOMBSTONE_KEY', 'loadNumber', 'loadSetting', 'markLanguageAsked'],
  'core/store/admin/jobs.ts': ['listUnendedJobs'],
  'core/store/delivery/deliveries.ts': ['enqueueComposed', 'queueDelivery'],
  'core/store/delivery/endpoints.ts': ['listEndpoints', 'removeEndpoint', 'saveEndpoint', 'saveHealth'],
  'core/store/delivery/feed.ts': ['appendFeed'],
  'core/store/delivery/next-deliveries.ts': ['findNextDeliveries'],
  'core/store/delivery/replays.ts': ['replayDeliveries'],
  'core/store/delivery/settlements.ts': ['cancelEach', 'findSkipped', 'saveSettlements'],
  'core/store/history/contents.ts': ['markContents', 'removeContents', 'settleMarked'],
  'core/store/history/parcels.ts': ['saveParcel'],
  'core/store/history/sighting-rows.ts': ['loadSightingsOf'],
  'core/store/history/tombstones.ts': ['loadTombstoneKey', 'saveTombstone'],
  'core/store/polling/due-polls.ts': ['createLeases', 'createTransactionLeases', 'findAskable', 'findDuePolls'],
  'core/store/polling/schedule-shift.ts': ['shiftSchedule'],
  'upkeep/retention/remove-aged.rows.ts': ['loadRetention'],
}

interface Import {
  readonly target: string
  readonly names: readonly string[]
  /** Whether the module is loaded at run time, not only read by the compiler. */
  readonly isLoaded: boolean
}

function importsOf(path: string, source: string): readonly Import[] {
  const { module } = parseSync(path, source)
  return module.staticImports.map(({ moduleRequest, entries, start }) => ({
    target: targetOf(path, moduleRequest.value),
    names: entries.flatMap(({ importName }) => importName.name ?? []),
    isLoaded: !source.slice(start).startsWith('import type'),
  }))
}

function targetOf(path: string, specifier: string): string {
  return specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : specifier
}

function taken(path: string, source: string): readonly string[] {
  return importsOf(path, source).flatMap(({ target, names }) =>
    names.filter((name) => OF_ENGINES[target]?.includes(name)).map((name) => `${path}: ${name}`),
  )
}

const sources = new Map(readModules(SOURCES).map(({ path }) => [path, readFileSync(SOURCES + path, 'utf8')]))

test('no flow calls a function of the store that an engine wraps', () => {
  const flows = [...sources].filter(([path]) => path.startsWith('core/flow/') || path.endsWith('.tx.ts'))
  expect(flows.flatMap(([path, source]) => taken(path, source))).toEqual([])
  expect(taken('core/flow/admin/x.ts', "import { listUnendedJobs } from '../../store/admin/jobs.ts'")).toEqual([
    'core/flow/admin/x.ts: listUnendedJobs',
  ])
})

test('each function that flows may not call exists', () => {
  const missing = Object.entries(OF_ENGINES).flatMap(([path, names]) =>
    names.filter((name) => !new RegExp(`export (?:async )?(?:function|const) ${name}\\b`).test(sources.get(path) ?? '')),
  )
  expect(missing).toEqual([])
})

const imports = new Map([...sources].map(([path, source]) => [path, importsOf(path, source)]))

/** Returns the modules that a module loads before it runs. */
function loadedBy(path: string, seen: Set<string> = new Set()): ReadonlySet<string> {
  if (seen.has(path)) return seen
  seen.add(path)
  for (const { target, isLoaded } of imports.get(path) ?? []) if (isLoaded) loadedBy(target, seen)
  return seen
}

function loadedLater(path: string): readonly string[] {
  const found: string[] = []
  new Visitor({
    ImportExpression({ source }) {
      if (source.type === 'Literal' && typeof source.value === 'string') found.push(targetOf(path, source.value))
    },
  }).visit(parseSync(path, sources.get(path) ?? '').program)
  return found
}

const isKysely = (target: string) => target === 'kysely' || target.startsWith('kysely/')

/** What commands import only when they start a relay or work on a store themselves. */
const WITH_STORE = ['trial/demo/sole-relay.ts', 'serving.ts', 'upkeep/restore/run-restore.ts'].concat(
  'upkeep/check/standalone-check.ts',
  'upkeep/erasure/lost-tombstones.ts',
  'upkeep/moving/store-in-use.ts',
  'upkeep/retention/retention.metrics.ts',
  'upkeep/retention/retention.problems.ts',
  'insight/watchdogs/watchdogs.duty.ts',
  'insight/watchdogs/watchdogs.metrics.ts',
  'insight/watchdogs/watchdogs.problems.ts',
  'server/postgres/server-stores.ts',
)

const THREADS = ['assembly/hosting/receiver-thread.ts', 'upkeep/backups/backup-thread.ts', 'core/store/sqlite/checkpoint-thread.ts'].concat(
  'upkeep/erasure/search-thread.ts',
)

test('kysely takes no time at the start of a command or of a thread that runs no statements', () => {
  const commands = [...sources.keys()].filter((path) => /^(?:console\/cli|trial)\/|\.command\.ts$/.test(path))
  const later = new Set([...new Set(commands.flatMap((path) => [...loadedBy(path)]))].flatMap(loadedLater))
  const loading = [...commands, ...later, ...THREADS].filter((path) => [...loadedBy(path)].some(isKysely))
  expect([...new Set(loading)].toSorted()).toEqual(WITH_STORE.toSorted())
})
