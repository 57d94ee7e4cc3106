import { registerHooks } from 'node:module'

// Preloaded into each process and thread of a relay (`NODE_OPTIONS`). Changes sources as they are loaded, so that the relay itself needs no code
// for simulated time or for a simulated next version. The next version has one more migration, and understands another format of the carrier.

/** The environment variable that makes a relay the next version of itself. */
const NEXT_VERSION = 'RELAY_SIMULATED_NEXT_VERSION'

interface Edit {
  /** The end of the module's path. */
  readonly of: string
  readonly from: string
  readonly to: string
}

const clock = new URL('./simulated-clock.ts', import.meta.url).href
const timers = new URL('./simulated-timers.ts', import.meta.url).href

const SIMULATED_TIME: readonly Edit[] = [
  { of: '/src/core/runtime/system-clock.ts', from: 'Date.now()', to: 'simulatedNow()' },
  { of: '/src/core/runtime/system-clock.ts', from: 'import', to: `import { simulatedNow } from '${clock}'; import` },
  // Leases keep real time. A replica would take a jump of its clock for a pause of its machine, and not trust its lease until the next renewal.
  {
    of: '/src/server/replicas/replicas.ts',
    from: 'clock: systemClock, log, onServerTime',
    to: 'clock: { now: () => Date.now(), monotonic: systemClock.monotonic }, log, onServerTime',
  },
  // Replicas take the time of their database server. Here they take simulated time instead, except for leases.
  { of: '/src/server/replicas/replicas.ts', from: 'Math.floor(monotonic() + aheadMs)', to: 'simulatedNow()' },
  { of: '/src/server/replicas/replicas.ts', from: 'import', to: `import { simulatedNow } from '${clock}'; import` },
  // Pauses that the carrier asks for, or that follow its failures, pass in simulated time.
  {
    of: '/src/core/wiring/carrier.ts',
    from: '    clock,\n',
    to: '    clock: { now: clock.now, monotonic: () => clock.monotonic() + aheadMs() },\n',
  },
  { of: '/src/core/wiring/carrier.ts', from: 'import', to: `import { aheadMs } from '${clock}'; import` },
  // Leases, deadlines of requests and other pauses use other timers, so they keep real time.
  ...['repeating', 'schedule', 'wakeup-timer'].map((name) => ({
    of: `/src/core/runtime/${name}.ts`,
    from: '',
    to: `import { setTimeout, clearTimeout } from '${timers}'; `,
  })),
]

/** The step that only the next version knows: a table with an index, and a column of a table that every push writes. */
const STEP = [
  'create table simulated_upgrade (id integer primary key, note text not null)',
  'create index simulated_upgrade_by_note on simulated_upgrade (note)',
  'alter table inbox add column simulated_note integer',
]
const UP = `async (db) => { for (const text of ${JSON.stringify(STEP)}) await sql.raw(text).execute(db) }`

const UPGRADE: readonly Edit[] = [
  {
    of: '/src/core/store/sqlite/migrate.ts',
    from: `'0001-schema': schema,`,
    to: `'0001-schema': schema, '0002-simulated': { up: ${UP} },`,
  },
  {
    of: '/src/server/postgres/postgres-migrate.ts',
    from: '[{ servesFrom: 1, up: schema.up }]',
    to: `[{ servesFrom: 1, up: schema.up }, { servesFrom: 1, up: ${UP} }]`,
  },
  {
    of: '/src/core/domain/ingest/parse-push.ts',
    from: `member(event, 'eventTime')`,
    to: `member(event, 'eventTime') ?? member(event, 'occurredAt')`,
  },
]

const edits = process.env[NEXT_VERSION] === undefined ? SIMULATED_TIME : [...SIMULATED_TIME, ...UPGRADE]

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    const due = edits.filter(({ of }) => url.endsWith(of))
    if (due.length === 0) return loaded
    return { ...loaded, source: due.reduce((source, edit) => edited(source, edit), textOf(loaded.source)) }
  },
})

function edited(source: string, { of, from, to }: Edit): string {
  if (!source.includes(from)) throw new Error(`${of} no longer has ${from}, which the simulation replaces`)
  return source.replace(from, () => to)
}

function textOf(source: unknown): string {
  return source instanceof Uint8Array ? Buffer.from(source).toString() : String(source)
}
