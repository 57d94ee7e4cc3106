/** What a room, or a file at the root of the sources, may import. */
export interface Room {
  /** A folder or a file. If a module is in several rooms, the one with the longest path counts. */
  readonly place: string
  /** The folders and files of the sources that the room may import, besides its own. */
  readonly imports: readonly string[]
  /** The folders of which the room may import types, and nothing that is loaded. */
  readonly types?: readonly string[]
  /** The npm packages that the room may import. */
  readonly libraries: readonly string[]
  /** The modules of Node that the room may import. */
  readonly platform: readonly string[]
}

/** The modules of Node that rooms with I/O may use: all except files, processes, threads and modules that load code. */
const EDGE = ['buffer', 'crypto', 'dns', 'dns/promises', 'events', 'http', 'https', 'net', 'os', 'path', 'readline', 'readline/promises']
  .concat(['stream', 'stream/promises', 'string_decoder', 'timers', 'timers/promises', 'tls', 'url', 'util', 'v8', 'zlib'])
  .map((name) => `node:${name}`)
const FILES = ['node:fs', 'node:fs/promises']

/** The ports of the flows, the file that joins what they write, and the list of the parts that flows share. */
const PORTS = [
  'ports.ts',
  'ingest/ports.ts',
  'history/ports.ts',
  'polling/ports.ts',
  'delivery/ports.ts',
  'admin/ports.ts',
  'relay.ts',
  'write-side.ts',
].map((name) => `flow/${name}`)

/** What flows may use of the store: its capabilities and the types of a transaction and of reads, but no engine. */
const STORE = [
  'admin/',
  'delivery/',
  'history/',
  'ingest/',
  'moving/',
  'polling/',
  'engine.ts',
  'read-store.ts',
  'settings.ts',
  'write-store.ts',
].map((name) => `store/${name}`)

/** The modules whose types are sent between threads: pushes, polls, deliveries and failures. */
const PASSING = ['errors.ts', 'ingest/inbox.ts', 'history/recording.ts', 'delivery/dispatch-round.ts', 'delivery/endpoint-state.ts'].map(
  (name) => `domain/${name}`,
)

/** The table of rooms. A module outside all rooms is a violation, so a new room or root file needs a row here. */
export const ROOMS: readonly Room[] = [
  { place: 'domain/', imports: [], libraries: ['zod'], platform: ['node:crypto'] },
  // Inflating a body needs no I/O, so node:zlib is allowed in the domain.
  { place: 'domain/ingest/mismatch/', imports: ['domain/'], libraries: [], platform: ['node:buffer', 'node:crypto', 'node:zlib'] },
  { place: 'flow/', imports: ['domain/', ...STORE], libraries: [], platform: [] },
  {
    place: 'http/',
    imports: ['domain/', 'flow/'],
    libraries: ['@koa/router', 'ipaddr.js', 'jose', 'koa', 'koa-body', 'markdown-it', 'rate-limiter-flexible', 'zod'],
    platform: EDGE,
  },
  // This makes docs/openapi.json. The running relay does not import it.
  { place: 'console/document/openapi.ts', imports: ['domain/', 'flow/'], libraries: ['zod', 'zod-openapi'], platform: [] },
  { place: 'store/', imports: ['domain/'], libraries: ['kysely', 'lru-cache'], platform: EDGE },
  {
    place: 'store/sqlite/',
    imports: ['domain/', 'regular-file.ts', 'store/'],
    libraries: ['better-sqlite3', 'kysely', 'lru-cache'],
    platform: [...EDGE, ...FILES, 'node:worker_threads'],
  },
  { place: 'store/postgres/', imports: ['domain/', 'store/'], libraries: ['kysely', 'lru-cache', 'pg'], platform: EDGE },
  // Requests to the carrier and deliveries to endpoints both go through outbound/, which guards and limits them.
  {
    place: 'carrier/',
    imports: ['domain/', ...PORTS, 'outbound/', 'core/store/polling/shared-carrier.ts'],
    libraries: ['p-retry', 'undici'],
    platform: EDGE,
  },
  { place: 'outbound/', imports: ['domain/', ...PORTS], libraries: ['ipaddr.js', 'undici'], platform: EDGE },
  // Workers, timers and caches decide nothing about parcels, so they may use only the domain's errors and types.
  {
    place: 'runtime/',
    imports: ['core/domain/errors.ts', 'core/domain/history/recording.ts', ...PORTS, 'server/replicas/replica-table.rows.ts'],
    libraries: ['lru-cache', 'node-cron', 'p-limit'],
    platform: EDGE,
  },
  { place: 'core/runtime/heap-flags.ts', imports: [], libraries: [], platform: ['node:v8'] },
  // Opening a file may hang, so it is done by a process that can be killed.
  { place: 'runtime/opening/', imports: [], libraries: [], platform: ['node:child_process', 'node:readline'] },
  { place: 'core/runtime/system-clock.ts', imports: PORTS, libraries: [], platform: ['node:perf_hooks'] },
  {
    place: 'runtime/threads/',
    imports: [...PASSING, ...PORTS, 'runtime/'],
    libraries: ['lru-cache'],
    platform: [...EDGE, 'node:worker_threads'],
  },
  // A push is sent between threads as text. Only this module writes and reads that text.
  {
    place: 'core/runtime/threads/event-codec.ts',
    imports: ['core/domain/history/content.ts', 'core/domain/history/observation.ts', 'core/domain/ingest/inbox.ts'],
    libraries: [],
    platform: [],
  },
  { place: 'sandbox/', imports: [], libraries: [], platform: EDGE },
  {
    place: 'cli/',
    imports: [
      'app.ts',
      'successor.ts',
      'config/',
      'domain/',
      'flow/',
      'core/ops/log.ts',
      'outbound/',
      'package-files.ts',
      'runtime/',
      'sandbox/',
      'store/',
    ]
      .concat(
        'assembly/running-relay.ts',
        'assembly/hosting/threads.ts',
        'upkeep/moving/undo-move.ts',
        'upkeep/restore/run-restore.ts',
        'upkeep/erasure/lost-tombstones.ts',
      )
      .concat('upkeep/check/standalone-check.ts'),
    // Commands know the answers of the API by the types of its schemas, and load no schema.
    types: ['http/'],
    libraries: ['@node-rs/argon2', 'commander', 'yaml'],
    // The arguments of a command may name files to read or write.
    platform: [...EDGE, ...FILES],
  },
  // The demo starts processes: a PostgreSQL server, and replicas that share it.
  { place: 'cli/demo/postgres/', imports: [], libraries: [], platform: [...EDGE, ...FILES, 'node:child_process', 'node:module'] },
  {
    place: 'trial/demo/replica-process.ts',
    imports: ['trial/demo.command/'],
    libraries: ['yaml'],
    platform: [...EDGE, ...FILES, 'node:child_process'],
  },
  // node-cron, which runs the schedules, also checks them.
  { place: 'config/', imports: ['domain/', 'regular-file.ts'], libraries: ['node-cron', 'yaml', 'zod'], platform: [...EDGE, ...FILES] },
  { place: 'core/config/compile-cache.ts', imports: [], libraries: [], platform: [...EDGE, 'node:module', 'node:os'] },
  // The rules that decide about an address also check the list of allowed networks.
  { place: 'core/config/allowed-target.ts', imports: ['core/outbound/address-rules.ts'], libraries: ['zod'], platform: [] },
  {
    place: 'ops/',
    imports: ['core/config/secret.ts', 'domain/', 'flow/'],
    libraries: ['jose', 'pino', 'prom-client'],
    platform: [...EDGE, 'node:perf_hooks'],
  },
  // This connects the rooms.
  {
    place: 'wiring/',
    imports: ['carrier/', 'config/', 'domain/', 'flow/', 'http/', 'ops/', 'outbound/', 'package-files.ts', 'runtime/', 'store/'],
    libraries: ['@node-rs/argon2'],
    platform: [...EDGE, 'node:worker_threads'],
  },
  { place: 'main.ts', imports: ['cli/', 'core/config/compile-cache.ts'], libraries: [], platform: [] },
  {
    place: 'app.ts',
    imports: ['carrier/', 'config/', 'domain/', 'flow/', 'http/', 'ops/', 'package-files.ts', 'runtime/', 'store/', 'wiring/'],
    libraries: ['@node-rs/argon2'],
    platform: EDGE,
  },
  // This starts the relay again in the same process after its store was moved.
  {
    place: 'successor.ts',
    imports: ['app.ts', 'config/', 'flow/', 'wiring/'],
    libraries: [],
    platform: [],
  },
  // This opens only regular files, because opening others, such as a pipe, may hang. Other modules read files through it.
  { place: 'regular-file.ts', imports: [], libraries: [], platform: ['node:fs'] },
  { place: 'package-files.ts', imports: [], libraries: [], platform: ['node:fs', 'node:url'] },
]

/** The rooms that read the environment. (The library `commander` also reads it, for flags of commands.) */
export const READS_ENVIRONMENT = ['config/']

/** Rooms that get the time and random values as arguments. */
export const TOLD_THE_TIME = ['domain/', 'flow/']

/** Names that say nothing about the contents. */
export const EMPTY_NAMES = ['common', 'helper', 'helpers', 'index', 'lib', 'misc', 'shared', 'type', 'types', 'util', 'utils']
