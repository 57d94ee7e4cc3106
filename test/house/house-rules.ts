/**
 * The core and the wings around it, and what each may import besides its own files. A wing is a folder of capabilities that the core works
 * without. Only `app.ts`, the files beside it and `assembly/` join them.
 */
export const WINGS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  console: ['core'],
  upkeep: ['core', 'console'],
  insight: ['core', 'console', 'upkeep'],
  server: ['core', 'console', 'upkeep'],
  trial: ['core', 'console'],
  assembly: ['core', 'console', 'upkeep', 'insight', 'server'],
}

/** What a room, or a file at the root of the sources, may import. */
export interface Room {
  /** A folder, a file, or `*` and the end of the name of files in wings. The end of a name counts first, then the longest path. */
  readonly place: string
  /** The folders and files of the sources, or the ends of names, that the room may import, besides its own room. */
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
const PORTS = ['ports.ts', 'relay-part.ts', 'write-side.ts'].map((name) => `core/flow/${name}`)

/** What flows may use of the store: its capabilities and the types of a transaction and of reads, but no engine. */
const STORE = ['admin/', 'delivery/', 'history/', 'ingest/', 'polling/', 'engine.ts', 'read-store.ts', 'settings.ts', 'write-store.ts'].map(
  (name) => `core/store/${name}`,
)

/** The modules whose types are sent between threads: pushes, polls, deliveries and failures. */
const PASSING = ['errors.ts', 'ingest/inbox.ts', 'history/recording.ts', 'delivery/dispatch-round.ts', 'delivery/endpoint-state.ts'].map(
  (name) => `core/domain/${name}`,
)

/** What the files of a capability of a wing may use, whichever they are; the ends of their names say less of some. */
const CAPABILITY = ['core/', 'console/', 'upkeep/', 'insight/', 'server/', 'package-files.ts', 'regular-file.ts']

/** What commands may load: they know the answers of the API by the types of its schemas, and load no schema. */
const COMMANDS = ['config/', 'domain/', 'flow/', 'ops/log.ts', 'outbound/', 'runtime/', 'store/', 'wiring/']
  .map((name) => `core/${name}`)
  .concat('console/cli/', 'console/parcels/parcel-queries.ts', 'console/problems/', 'package-files.ts', 'upkeep/', 'insight/', 'server/')

/** The table of rooms. A module outside all rooms is a violation, so a new room or root file needs a row here. */
export const ROOMS: readonly Room[] = [
  { place: 'core/domain/', imports: [], libraries: ['zod'], platform: ['node:crypto'] },
  { place: 'core/flow/', imports: ['core/domain/', ...STORE], libraries: [], platform: [] },
  {
    place: 'core/http/',
    imports: ['core/domain/', 'core/flow/'],
    libraries: ['@koa/router', 'ipaddr.js', 'jose', 'koa', 'koa-body', 'rate-limiter-flexible', 'zod'],
    platform: EDGE,
  },
  { place: 'core/store/', imports: ['core/domain/'], libraries: ['kysely', 'lru-cache'], platform: EDGE },
  {
    place: 'core/store/sqlite/',
    imports: ['core/domain/', 'regular-file.ts', 'core/store/'],
    libraries: ['better-sqlite3', 'kysely', 'lru-cache'],
    platform: [...EDGE, ...FILES, 'node:worker_threads'],
  },
  // Requests to the carrier and deliveries to endpoints both go through outbound/, which guards and limits them.
  {
    place: 'core/carrier/',
    imports: ['core/domain/', ...PORTS, 'core/outbound/', 'core/store/polling/shared-carrier.ts'],
    libraries: ['p-retry', 'undici'],
    platform: EDGE,
  },
  { place: 'core/outbound/', imports: ['core/domain/', ...PORTS], libraries: ['ipaddr.js', 'undici'], platform: EDGE },
  // Workers, timers and caches decide nothing about parcels, so they may use only the domain's errors and types.
  {
    place: 'core/runtime/',
    imports: ['core/domain/errors.ts', 'core/domain/history/recording.ts', ...PORTS],
    libraries: ['lru-cache', 'node-cron', 'p-limit'],
    platform: EDGE,
  },
  { place: 'core/runtime/heap-flags.ts', imports: [], libraries: [], platform: ['node:v8'] },
  // Opening a file may hang, so it is done by a process that can be killed.
  { place: 'core/runtime/opening/', imports: [], libraries: [], platform: ['node:child_process', 'node:readline'] },
  { place: 'core/runtime/system-clock.ts', imports: PORTS, libraries: [], platform: ['node:perf_hooks'] },
  {
    place: 'core/runtime/threads/',
    imports: [...PASSING, ...PORTS, 'core/runtime/'],
    libraries: ['lru-cache'],
    platform: [...EDGE, 'node:worker_threads'],
  },
  // A push is sent between threads as text. Only this module writes and reads that text.
  {
    place: 'core/runtime/threads/event-codec.ts',
    imports: ['content.ts', 'observation.ts'].map((name) => `core/domain/history/${name}`).concat('core/domain/ingest/inbox.ts'),
    libraries: [],
    platform: [],
  },
  // node-cron, which runs the schedules, also checks them.
  {
    place: 'core/config/',
    imports: ['core/domain/', 'regular-file.ts'],
    libraries: ['node-cron', 'yaml', 'zod'],
    platform: [...EDGE, ...FILES],
  },
  { place: 'core/config/compile-cache.ts', imports: [], libraries: [], platform: [...EDGE, 'node:module', 'node:os'] },
  // The rules that decide about an address also check the list of allowed networks.
  {
    place: 'core/config/schema-outbound.ts',
    imports: ['core/domain/', 'core/outbound/address-rules.ts'],
    libraries: ['zod'],
    platform: [],
  },
  {
    place: 'core/ops/',
    imports: ['core/config/secret.ts', 'core/domain/', 'core/flow/'],
    libraries: ['jose', 'pino', 'prom-client'],
    platform: [...EDGE, 'node:perf_hooks'],
  },
  // This connects the rooms of the core.
  {
    place: 'core/wiring/',
    imports: ['core/', 'package-files.ts'],
    libraries: ['@node-rs/argon2'],
    platform: [...EDGE, 'node:worker_threads'],
  },

  // Files of wings, by the ends of their names.
  // Inflating a body needs no I/O, so node:zlib is allowed in rules.
  {
    place: '*.rules.ts',
    imports: ['core/domain/', 'console/problems/', '*.rules.ts'],
    libraries: ['zod'],
    platform: ['node:buffer', 'node:crypto', 'node:zlib'],
  },
  {
    place: '*.tx.ts',
    imports: ['core/domain/', 'core/flow/', ...STORE, 'console/problems/', '*.rules.ts', '*.rows.ts', '*.tx.ts'],
    types: ['upkeep/', 'console/'],
    libraries: [],
    platform: [],
  },
  {
    place: '*.rows.ts',
    imports: ['core/domain/', 'core/store/', 'console/problems/', '*.rules.ts', '*.rows.ts'],
    libraries: ['kysely'],
    platform: EDGE,
  },
  {
    place: '*.routes.ts',
    imports: ['core/', 'console/', 'upkeep/', 'insight/', 'server/'],
    libraries: ['@koa/router', 'koa', 'zod'],
    platform: ['node:buffer', 'node:http'],
  },
  { place: '*.config.ts', imports: ['core/config/', 'core/domain/'], libraries: ['zod'], platform: [] },
  { place: '*.problems.ts', imports: ['core/', 'console/', 'upkeep/', 'insight/'], libraries: [], platform: [] },
  { place: '*.metrics.ts', imports: ['core/', 'console/', 'upkeep/', 'insight/'], libraries: ['prom-client'], platform: [] },
  { place: '*.page.ts', imports: ['core/', 'console/', 'upkeep/', 'insight/', 'server/'], libraries: ['zod'], platform: ['node:buffer'] },
  {
    place: '*.command.ts',
    imports: [...COMMANDS, 'trial/'],
    types: ['core/http/', 'console/'],
    libraries: ['commander', 'yaml'],
    platform: [...EDGE, ...FILES],
  },

  // The console explains what goes wrong; that needs no I/O.
  { place: 'console/problems/', imports: ['core/domain/', '*.rules.ts'], libraries: ['zod'], platform: ['node:crypto'] },
  { place: 'console/', imports: CAPABILITY, libraries: ['kysely', 'zod'], platform: [...EDGE, ...FILES] },
  {
    place: 'console/portal/',
    imports: CAPABILITY,
    libraries: ['@koa/router', 'ipaddr.js', 'jose', 'koa', 'koa-body', 'markdown-it', 'zod'],
    platform: EDGE,
  },
  // This makes docs/openapi.json. The running relay does not import it.
  { place: 'console/document/openapi.ts', imports: CAPABILITY, libraries: ['zod', 'zod-openapi'], platform: [] },
  {
    place: 'console/cli/',
    imports: [...COMMANDS, 'regular-file.ts', 'serving.ts', 'wings.ts'],
    types: ['core/http/', 'console/', 'upkeep/', 'server/'],
    libraries: ['@node-rs/argon2', 'commander', 'yaml'],
    // The arguments of a command may name files to read or write.
    platform: [...EDGE, ...FILES],
  },
  {
    place: 'upkeep/',
    imports: CAPABILITY,
    libraries: ['better-sqlite3', 'kysely', '@node-rs/argon2'],
    platform: [...EDGE, ...FILES, 'node:worker_threads'],
  },
  { place: 'insight/', imports: CAPABILITY, libraries: [], platform: [] },
  // The files of a warehouse are written and read here.
  { place: 'insight/export/', imports: CAPABILITY, libraries: ['hyparquet', 'hyparquet-writer'], platform: [...EDGE, ...FILES] },
  { place: 'upkeep/refusals/', imports: CAPABILITY, libraries: [], platform: ['node:buffer', 'node:crypto', 'node:zlib'] },
  { place: 'server/', imports: CAPABILITY, libraries: ['kysely', 'lru-cache', 'pg'], platform: EDGE },

  { place: 'trial/sandbox/', imports: [], libraries: ['commander', 'yaml'], platform: [...EDGE, ...FILES] },
  {
    place: 'trial/demo/',
    imports: ['trial/', 'app.ts', 'core/config/', 'core/flow/ports.ts', 'console/cli/exit-codes.ts', 'package-files.ts'],
    libraries: ['commander', 'yaml'],
    platform: [...EDGE, ...FILES],
  },
  // The demo starts processes: a PostgreSQL server, and replicas that share it.
  { place: 'trial/demo/postgres/', imports: [], libraries: [], platform: [...EDGE, ...FILES, 'node:child_process', 'node:module'] },
  {
    place: 'trial/demo/start-replicas.ts',
    imports: ['trial/demo/', 'core/config/', 'package-files.ts'],
    libraries: ['yaml'],
    platform: [...EDGE, ...FILES, 'node:child_process'],
  },

  // These join the core and the wings.
  {
    place: 'assembly/',
    imports: [...CAPABILITY, 'wings.ts'],
    libraries: ['@koa/router', 'koa'],
    platform: [...EDGE, 'node:worker_threads'],
  },
  // The table of what wings offer. Only this imports them by name.
  {
    place: 'wings.ts',
    imports: [
      'core/config/schema.ts',
      'core/flow/ports.ts',
      'core/http/',
      'core/wiring/',
      'console/',
      'upkeep/',
      'insight/',
      'server/',
      'trial/',
    ],
    libraries: ['commander', 'prom-client'],
    platform: [],
  },
  { place: 'main.ts', imports: ['console/cli/', 'core/config/compile-cache.ts'], libraries: [], platform: [] },
  { place: 'app.ts', imports: [...CAPABILITY, 'assembly/', 'wings.ts'], libraries: ['@node-rs/argon2'], platform: EDGE },
  // This runs the relay until a signal ends it.
  {
    place: 'serving.ts',
    imports: ['assembly/hosting/threads.ts', 'assembly/running-relay.ts', 'console/cli/', 'core/', 'package-files.ts', 'successor.ts'],
    libraries: [],
    platform: [],
  },
  // This starts the relay again in the same process after its store was moved.
  { place: 'successor.ts', imports: ['app.ts', 'assembly/', 'core/', 'upkeep/moving/', 'server/'], libraries: [], platform: [] },
  // This opens only regular files, because opening others, such as a pipe, may hang. Other modules read files through it.
  { place: 'regular-file.ts', imports: [], libraries: [], platform: ['node:fs'] },
  { place: 'package-files.ts', imports: [], libraries: [], platform: ['node:fs', 'node:url'] },
]

/** The rooms that read the environment. (The library `commander` also reads it, for flags of commands.) */
export const READS_ENVIRONMENT = ['core/config/']

/** Rooms that get the time and random values as arguments. */
export const TOLD_THE_TIME = ['core/domain/', 'core/flow/', 'console/problems/', '*.rules.ts', '*.tx.ts']

/** Names that say nothing about the contents. */
export const EMPTY_NAMES = ['common', 'helper', 'helpers', 'index', 'lib', 'misc', 'shared', 'type', 'types', 'util', 'utils']
