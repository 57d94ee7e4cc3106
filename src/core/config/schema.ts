import { z } from 'zod'
import { carrierPoll, carrierUpstream, delivery, endpoint, operator } from './schema-outbound.ts'
import { looksWeak, oneOrTwoSecrets, type SchemaContext, secret } from './secret-setting.ts'
import type { Complaint } from './source.ts'
import {
  cidr,
  duration,
  flag,
  headerName,
  host,
  list,
  oneOf,
  section,
  size,
  storeAddressProblem,
  text,
  webhookPath,
  webUrl,
  whole,
  zone,
} from './values.ts'

/** A section that a wing offers. Its settings are validated, documented, printed and reloaded like those of the core. */
export interface Section {
  readonly name: string
  /** The setting of the core after which it is documented. */
  readonly after: 'delivery' | 'identifierReuseAfter'
  readonly schema: (context: SchemaContext) => z.ZodType
  /** Checks rules that involve several settings, among the values as written, even if the schema refuses some. */
  readonly check?: (values: unknown) => readonly Complaint[]
}

/** Loads the sections of all wings. */
export type LoadSections = () => Promise<readonly Section[]>

/**
 * Creates the schema of all settings: their keys, values, defaults and, in `describe`, their purpose. Parsing puts the unit into the name (`timeout:
 * 10s` becomes `timeoutMs: 10000`). The JSON Schema for editors and `docs/configuration.md` are generated from it.
 */
export function configSchema(context: SchemaContext, sections: readonly Section[]) {
  const offered = (place: Section['after']): object =>
    Object.fromEntries(sections.filter(({ after }) => after === place).map(({ name, schema }) => [name, schema(context)]))
  return section({
    listen: listen(),
    store: store(context),
    webhook: webhook(context),
    shutdownTimeout: duration('0s', '10m').prefault('10s').describe('How long a stop waits for requests and calls in flight.'),
    upstream: carrierUpstream(context),
    poll: carrierPoll(context),
    serve: serve(),
    apps: list(app(context), 'one { username, passwordHash, scopes } a line')
      .default([])
      .describe('The apps and operators that may use the internal listener.'),
    token: section({ lifetime: duration('10s', '30d').prefault('1h').describe('How long a token is valid.') })
      .transform(({ lifetime }) => ({ lifetimeMs: lifetime }))
      .prefault({})
      .describe('The tokens that /auth/token issues to apps. The relay makes their signing key on first start and keeps it in the store.'),
    endpoints: list(endpoint(context), 'one { name, url, sharedKey } a line')
      .default([])
      .describe('Internal subscribers that receive every new entry.'),
    delivery: delivery(),
    ...offered('delivery'),
    secrets: atRestKeys(context),
    operator: operator(context).optional(),
    portal: portal(),
    zone: zone
      .default('UTC')
      .describe(
        'Time zone, such as Europe/Stockholm, in which backups are scheduled, days are counted and watchdogs look at the time of day.',
      ),
    retention: retention(),
    identifierReuseAfter: z
      .union([z.literal('never'), duration('1d', '36500d')], { error: 'must be never, or a duration such as 180d' })
      .prefault('180d')
      .describe('This long after an erasure, the erased identifier may belong to another parcel. never: it does not.'),
    ...offered('identifierReuseAfter'),
    limits: limits(),
    log: section({ level: oneOf(['debug', 'info', 'warn', 'error']).default('info').describe('The lowest level that is logged.') })
      .prefault({})
      .describe('The log: JSON lines on standard output.'),
  })
    .transform(({ shutdownTimeout, identifierReuseAfter, operator: notified, ...rest }) => ({
      ...rest,
      identifierReuseAfterMs: identifierReuseAfter === 'never' ? null : identifierReuseAfter,
      shutdownTimeoutMs: shutdownTimeout,
      operator: notified ?? null,
    }))
    .describe('Configuration of parcel relay.')
}

/** Creates the schema of what a command needs that works on the store of a stopped relay. It ignores everything else, and keys of endpoints that cannot be read. */
export function storeSchema(context: SchemaContext) {
  const signed = z.object({ name: z.string(), sharedKey: secret(context).nullable().catch(null) })
  return z.object({ store: store(context), secrets: atRestKeys(context), endpoints: z.array(signed).catch([]) })
}

function listen() {
  const listener = (address: string, port: number, purpose: string, unencrypted: string) =>
    section({
      host: host.default(address).describe('Address to listen on.'),
      port: whole(0, 65_535).default(port).describe('Port to listen on; 0: any free port.'),
      tls: section({
        certFile: text.describe('PEM file with the certificate chain. A reload reads both files again.'),
        keyFile: text.describe('PEM file with its private key.'),
      })
        .optional()
        .describe(`Serve HTTPS here. ${unencrypted}`),
      trustProxy: list(cidr, '[10.0.0.0/8]').default([]).describe('Networks of proxies whose X-Forwarded-For is trusted. Default: none.'),
    })
      .transform(({ tls, ...rest }) => ({ ...rest, tls: tls ?? null }))
      .prefault({})
      .describe(purpose)
  return section({
    public: listener(
      '0.0.0.0',
      8080,
      'Where the carrier pushes: the webhook path and /healthz, nothing else.',
      'Without it, put a TLS proxy in front.',
    ),
    internal: listener(
      '127.0.0.1',
      8081,
      'For apps, operators, their portal and metrics.',
      'Without it, apps and operators send passwords and tokens in plain HTTP.',
    ),
  })
    .prefault({})
    .describe('The two addresses the relay listens on.')
}

function store(context: SchemaContext) {
  return secret(context, { problem: storeAddressProblem })
    .transform((location) => {
      const written = location.reveal()
      if (written.startsWith('sqlite:')) return { engine: 'sqlite' as const, path: written.slice('sqlite:'.length) }
      return { engine: 'postgres' as const, url: location }
    })
    .prefault('sqlite:data/relay.db')
    .describe(
      'sqlite:PATH (PATH relative to the working directory) or postgres://user:password@host:5432/database, which needs secrets.atRestKeys. ' +
        'Behind a pooler that knows no named statements: postgres://...?pgbouncer=true.',
    )
}

function webhook(context: SchemaContext) {
  return section(
    {
      path: webhookPath.default('/webhooks/status').describe('The exact path the carrier posts to.'),
      sharedKeys: list(secret(context, { warning: looksWeak }), '[{ env: RELAY_SHARED_KEY }]')
        .min(1, { error: 'must hold at least one key, such as [{ env: RELAY_SHARED_KEY }]' })
        .describe('The signing keys agreed with the carrier. Any may match: list both the old and the new one while you rotate.'),
      bodyBytesMax: size(1024, 67_108_864)
        .prefault(262_144)
        .describe('The largest push that is accepted; a larger one is answered with 413.'),
    },
    'at least sharedKeys: [{ env: RELAY_SHARED_KEY }]',
  ).describe('How the carrier pushes.')
}

function serve() {
  const refresh = z.union([z.literal('never'), duration('1s', '365d')], { error: 'must be never, or a duration such as 30m' })
  return section({
    notFoundFor: duration('0s', '7d')
      .prefault('5m')
      .describe('How long the relay remembers the carrier\'s "not found" before it asks again.'),
    fetchUnknown: flag.default(true).describe('Ask the carrier about identifiers that the relay does not know.'),
    fetchMissingLanguage: flag.default(true).describe('Ask the carrier for texts in a language that entries lack.'),
    refreshOlderThan: refresh.prefault('never').describe('Ask the carrier first if it last reported on the parcel longer ago than this.'),
  })
    .transform(({ notFoundFor, refreshOlderThan, ...rest }) => ({
      ...rest,
      notFoundForMs: notFoundFor,
      refreshOlderThanMs: refreshOlderThan === 'never' ? null : refreshOlderThan,
    }))
    .prefault({})
    .describe('How requests from apps are answered.')
}

function app(context: SchemaContext) {
  const PHC = /^\$argon2id\$v=19\$m=\d{1,7},t=\d{1,3},p=\d{1,3}\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{22,86}$/
  // A hash that was typed without quotes. The shell takes each `$` and the word after it for a variable, and removes both.
  const MANGLED = /^[^$]*=\d{1,7},t=\d{1,3},p=\d{1,3}/
  const problem = (value: string) => {
    if (PHC.test(value)) return null
    return MANGLED.test(value)
      ? "is an argon2id hash that a shell has changed, because `$` begins a variable there: write it in single quotes, '$argon2id$...'"
      : 'must be an argon2id hash that begins with $argon2id$: make one with `parcel-relay hash-password` and write it in single quotes'
  }
  return section({
    username: text.describe('The user name it logs in with.'),
    passwordHash: oneOrTwoSecrets(context, { problem }).describe(
      'The output of `parcel-relay hash-password`; a list of two while the password is replaced, of which either counts.',
    ),
    scopes: list(oneOf(['status', 'admin']), '[status]')
      .min(1, { error: 'must hold at least one of status, admin' })
      .describe('status: the status API and the feed; admin: everything else under /relay.'),
  })
}

function atRestKeys(context: SchemaContext) {
  return section({
    atRestKeys: list(atRestKey(context), '[{ env: RELAY_AT_REST_KEY }]')
      .default([])
      .describe(
        'The first encrypts, all decrypt. To replace a key, put the new one first and keep the old one until everything is re-encrypted.',
      ),
  })
    .prefault({})
    .describe('Keys that encrypt endpoint keys in the store. Default: the relay makes a key file, mode 0600, beside the store.')
}

function atRestKey(context: SchemaContext) {
  const problem = (value: string) =>
    /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(value) ? null : 'must be 32 bytes in Base64: make them with `parcel-relay generate-key`'
  return secret(context, { problem })
}

function portal() {
  return section({
    enabled: flag.default(true).describe('false: there is no portal.'),
    publicUrl: webUrl
      .nullable()
      .default(null)
      .describe(
        'The address at which browsers reach the portal through a proxy; the proxy must remove the path. Default: the address of each request.',
      ),
    trustedHeader: headerName
      .nullable()
      .default(null)
      .describe('The header in which a proxy of listen.internal.trustProxy names the person that it has logged in. Default: none.'),
    admins: list(text, '[anna]')
      .default([])
      .describe('The people named by the proxy who may do everything. Others read the overview and parcels.'),
  })
    .prefault({})
    .describe('The portal for operators, at / of the internal listener. People log in as an app of apps.')
}

function retention() {
  const kept = (name: keyof typeof RETENTION_DEFAULTS, purpose: string) =>
    duration('1s', '36500d').prefault(RETENTION_DEFAULTS[name]).describe(purpose)
  return section({
    raw: kept('raw', 'How long the bytes of pushes and polled answers are kept; the entries made from them stay. At least feed.'),
    history: kept('history', 'How long a parcel is kept after its last entry, its watch order and the last question for it.'),
    deliveries: kept('deliveries', 'How long deliveries that have ended are kept, with their attempts.'),
    feed: kept('feed', 'How long the feed reaches back. At least deliveries.'),
    audit: kept('audit', 'How long the audit trail and operator events are kept.'),
    held: kept(
      'held',
      'The longest time for which undelivered events, pushes in quarantine and data that an endpoint still needs are kept, even if a time above is over.',
    ),
    reports: kept('reports', 'How long the days of the carrier’s report are kept, and what proves them.'),
  })
    .transform(({ raw, history, deliveries, feed, audit, held, reports }) => ({
      rawMs: raw,
      historyMs: history,
      deliveriesMs: deliveries,
      feedMs: feed,
      auditMs: audit,
      heldMs: held,
      reportsMs: reports,
    }))
    .prefault({})
    .describe('How long data is kept. An hourly pass removes what is older; an event older than `history` is not recorded.')
}

function limits() {
  return section({
    bodyBytesInFlight: size(65_536, 8_589_934_592)
      .prefault('32MB')
      .describe('Bytes of unverified pushes held at once; beyond that pushes get 503.'),
    requestsWaiting: whole(1, 1_000_000)
      .default(2000)
      .describe('Pipelined requests that wait, over all connections of a listener; beyond that the connection with the most is closed.'),
    feedFollowers: whole(1, 100_000)
      .default(1000)
      .describe(
        'Streams and waiting requests of the feed at once. When all are in use, an app with less than a quarter can still get one, and the app with the most loses its oldest.',
      ),
    connections: whole(1, 1_000_000)
      .default(4096)
      .describe(
        'Open connections per listener, those in a TLS handshake included. Beyond that the oldest that has sent no whole request is closed, ' +
          'then the oldest that has brought neither a signed push nor a valid token.',
      ),
    batch: whole(1, 10_000).default(256).describe('The maximum of observations in one transaction.'),
    cacheBytes: size(0, 68_719_476_736).prefault('64MB').describe('Memory for cached answers; 0: no cache.'),
    freeSpaceMin: size(0, 1_099_511_627_776).prefault('256MB').describe('Free disk space below which pushes are answered with 503.'),
    failuresPerMinute: whole(1, 1_000_000)
      .default(600)
      .describe(
        'Bad signatures, tokens or passwords that an address (IPv6: /64) may send to a listener in a minute; further failures get 429. The same ' +
          'limit holds for wrong passwords from an address, and for one user from an address. Above it, only a password that was right before is accepted.',
      ),
    unknownPerMinute: whole(1, 1_000_000).default(600).describe('Unknown identifiers per app and minute before 429.'),
  })
    .transform(({ freeSpaceMin, ...rest }) => ({ ...rest, freeSpaceBytesMin: freeSpaceMin }))
    .prefault({})
    .describe('Limits that keep the relay from running out of memory, disk or connections.')
}

/** How long each kind of data is kept if the config file does not say. */
export const RETENTION_DEFAULTS = {
  raw: '90d',
  history: '400d',
  deliveries: '30d',
  feed: '90d',
  audit: '400d',
  held: '400d',
  reports: '1830d',
} as const
