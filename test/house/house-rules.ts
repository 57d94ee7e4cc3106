/** What a room, or a file at the root of the sources, may import. */
export interface Room {
  /** A folder, or one file. Of several that hold a module, the longest counts. */
  readonly place: string
  /** Folders and files of the sources, besides the room's own. */
  readonly imports: readonly string[]
  /** Packages. */
  readonly libraries: readonly string[]
  /** Modules of Node. */
  readonly platform: readonly string[]
}

/** What an edge may use of Node: everything but files, processes, threads and what could load any module unseen. */
const EDGE = ['buffer', 'crypto', 'dns', 'dns/promises', 'events', 'http', 'https', 'net', 'os', 'path', 'readline', 'readline/promises']
  .concat(['stream', 'stream/promises', 'string_decoder', 'timers', 'timers/promises', 'tls', 'url', 'util', 'v8', 'zlib'])
  .map((name) => `node:${name}`)
const FILES = ['node:fs', 'node:fs/promises']

/** The table of rooms. A module outside all of them is a fault: a new room, or a new file at the root, is a decision and gets a row. */
export const ROOMS: readonly Room[] = [
  { place: 'domain/', imports: [], libraries: ['zod'], platform: ['node:crypto'] },
  { place: 'flow/', imports: ['domain/'], libraries: [], platform: [] },
  {
    place: 'http/',
    imports: ['domain/', 'flow/'],
    libraries: ['@koa/router', 'ipaddr.js', 'jose', 'koa', 'koa-body', 'rate-limiter-flexible', 'zod'],
    platform: EDGE,
  },
  { place: 'store/', imports: ['domain/', 'flow/ports.ts'], libraries: ['kysely', 'lru-cache'], platform: EDGE },
  {
    place: 'store/engines/',
    imports: ['domain/', 'flow/ports.ts'],
    libraries: ['better-sqlite3', 'kysely', 'pg'],
    platform: [...EDGE, ...FILES, 'node:worker_threads'],
  },
  { place: 'remote/', imports: ['domain/', 'flow/ports.ts'], libraries: ['ipaddr.js', 'p-retry', 'undici'], platform: EDGE },
  // Of the domain only the words for failure: a loop refuses work, it decides nothing about parcels.
  {
    place: 'run/',
    imports: ['domain/errors.ts', 'flow/ports.ts'],
    libraries: ['lru-cache', 'node-cron'],
    platform: [...EDGE, 'node:worker_threads'],
  },
  // Which threads a process has, and what each is called, the system tells in files.
  { place: 'run/priority.ts', imports: [], libraries: [], platform: [...EDGE, ...FILES] },
  { place: 'run/heap-flags.ts', imports: [], libraries: [], platform: ['node:v8'] },
  // What a push says crosses threads as text: it is written and read in this one place.
  {
    place: 'run/packed-reading.ts',
    imports: ['domain/content.ts', 'domain/observation.ts', 'domain/webhook-event.ts'],
    libraries: [],
    platform: [],
  },
  { place: 'sandbox/', imports: [], libraries: [], platform: EDGE },
  {
    place: 'cli/',
    imports: [
      'app.ts',
      'config.ts',
      'config/',
      'domain/',
      'flow/',
      'log.ts',
      'package-files.ts',
      'remote/',
      'run/priority.ts',
      'run/heap-flags.ts',
      'sandbox/',
      'secret.ts',
      'store/',
      'system-clock.ts',
      'threads.ts',
    ],
    libraries: ['@node-rs/argon2', 'commander', 'yaml'],
    // A command is given names of files to read and write.
    platform: [...EDGE, ...FILES],
  },
  // A schedule is checked by the library that will keep it.
  {
    place: 'config/',
    imports: ['config.ts', 'domain/', 'secret.ts'],
    libraries: ['node-cron', 'yaml', 'zod'],
    platform: [...EDGE, ...FILES],
  },
  // A network is checked by the rules that will hold it.
  { place: 'config/allowed-target.ts', imports: ['remote/address-rules.ts'], libraries: ['zod'], platform: [] },
  { place: 'config.ts', imports: ['config/', 'domain/', 'secret.ts'], libraries: ['yaml', 'zod'], platform: FILES },
  { place: 'main.ts', imports: ['cli/'], libraries: [], platform: [] },
  {
    place: 'app.ts',
    imports: [
      'at-rest-keys.ts',
      'config.ts',
      'config/',
      'domain/',
      'flow/',
      'http/',
      'metrics.ts',
      'package-files.ts',
      'remote/',
      'run/',
      'store/',
      'system-clock.ts',
      'listen.ts',
      'receive-side.ts',
      'relaying.ts',
      'threads.ts',
      'vault.ts',
      'write-side.ts',
    ],
    libraries: ['@node-rs/argon2'],
    platform: EDGE,
  },
  {
    place: 'hosted-writer.ts',
    imports: ['config.ts', 'config/delivery-rules.ts', 'flow/ports.ts', 'run/', 'write-side.ts'],
    libraries: [],
    platform: ['node:worker_threads'],
  },
  {
    place: 'hosted-receiver.ts',
    imports: ['config.ts', 'flow/ports.ts', 'log.ts', 'receive-side.ts', 'run/'],
    libraries: [],
    platform: ['node:worker_threads'],
  },
  {
    place: 'threads.ts',
    imports: ['config.ts', 'hosted-receiver.ts', 'hosted-writer.ts', 'run/'],
    libraries: [],
    platform: ['node:worker_threads'],
  },
  { place: 'package-files.ts', imports: [], libraries: [], platform: ['node:fs', 'node:url'] },
  { place: 'listen.ts', imports: ['config.ts', 'config/', 'domain/errors.ts', 'http/'], libraries: [], platform: ['node:http'] },
  {
    place: 'relaying.ts',
    imports: ['config.ts', 'config/delivery-rules.ts', 'config/named-file.ts', 'domain/', 'flow/', 'remote/', 'run/'],
    libraries: [],
    platform: [],
  },
  { place: 'at-rest-keys.ts', imports: ['config.ts', 'store/engines/sqlite-key-file.ts', 'vault.ts'], libraries: [], platform: [] },
  { place: 'vault.ts', imports: ['flow/ports.ts'], libraries: ['jose'], platform: ['node:crypto'] },
  { place: 'write-side.ts', imports: ['domain/', 'flow/', 'store/'], libraries: [], platform: EDGE },
  {
    place: 'writer-thread.ts',
    imports: ['flow/ports.ts', 'hosted-writer.ts', 'log.ts', 'run/', 'system-clock.ts', 'write-side.ts'],
    libraries: [],
    platform: ['node:worker_threads'],
  },
  { place: 'receive-side.ts', imports: ['config.ts', 'domain/', 'flow/', 'http/', 'listen.ts', 'run/'], libraries: [], platform: [] },
  {
    place: 'receiver-thread.ts',
    imports: ['hosted-receiver.ts', 'log.ts', 'receive-side.ts', 'run/', 'system-clock.ts'],
    libraries: [],
    platform: ['node:worker_threads'],
  },
  { place: 'log.ts', imports: ['flow/ports.ts', 'secret.ts'], libraries: ['pino'], platform: EDGE },
  { place: 'metrics.ts', imports: ['flow/endpoint-gauges.ts', 'flow/ports.ts'], libraries: ['prom-client'], platform: ['node:perf_hooks'] },
  { place: 'secret.ts', imports: [], libraries: [], platform: ['node:util'] },
  { place: 'system-clock.ts', imports: ['flow/ports.ts'], libraries: [], platform: ['node:perf_hooks'] },
]

/** Where the environment is read. (The sandbox command's flags name variables too; commander reads those.) */
export const READS_ENVIRONMENT = ['config.ts', 'config/']

/** Rooms that are told the time and handed what is random. */
export const TOLD_THE_TIME = ['domain/', 'flow/']

/** Where a type may be asserted, and why the compiler cannot know. */
export const ASSERTS_TYPES = [
  // Rows and stored JSON become what this version or an older one wrote there.
  'store/codec.ts',
  // Rows come from the driver as it found them; the statement that asked for them knows their columns.
  'store/engines/',
  // A statement is compiled once against places that are filled in later.
  'store/statement.ts',
  // A message between threads carries no types; both ends are compiled together.
  'run/thread.ts',
  'run/packed-reading.ts',
  'receiver-thread.ts',
  'writer-thread.ts',
  // What `encodeContent` wrote, read where it is kept and where it travels.
  'domain/content.ts',
]

/** Names that say nothing of what is inside. */
export const EMPTY_NAMES = ['common', 'helper', 'helpers', 'index', 'lib', 'misc', 'shared', 'type', 'types', 'util', 'utils']
