import { z } from 'zod'
import { carrierPoll, carrierUpstream } from './schema-carrier.ts'
import { delivery, endpoint, operator } from './schema-relaying.ts'
import { looksWeak, type SchemaContext, secret } from './secret-setting.ts'
import { cidr, duration, flag, host, isPostgresUrl, list, oneOf, section, size, text, webhookPath, whole } from './values.ts'

/**
 * Every setting: its key, its values, its default and, in `describe`, what it is for. What comes out carries units in its names
 * (`timeout: 10s` becomes `timeoutMs: 10000`). The editors' schema is generated from it too.
 */
export function configSchema(context: SchemaContext) {
  return section({
    listen: listen(),
    store: store(context),
    webhook: webhook(context),
    shutdownTimeout: duration('0s', '10m').prefault('10s').describe('How long a stop waits for what is in flight.'),
    upstream: carrierUpstream(context),
    poll: carrierPoll(context),
    serve: serve(),
    apps: list(app(context), 'one { username, passwordHash, scopes } a line')
      .default([])
      .describe('Who may ask: internal apps and operators.'),
    token: section({ lifetime: duration('10s', '30d').prefault('1h').describe('How long a token handed to an app is good for.') })
      .transform(({ lifetime }) => ({ lifetimeMs: lifetime }))
      .prefault({})
      .describe('The tokens that /auth/token hands to apps. Their signing key is made on first start and kept in the store.'),
    endpoints: list(endpoint(context), 'one { name, url, sharedKey } a line')
      .default([])
      .describe('Internal subscribers that are pushed every new entry.'),
    delivery: delivery(),
    secrets: section({
      atRestKeys: list(atRestKey(context), '[{ env: RELAY_AT_REST_KEY }]')
        .default([])
        .describe('The first encrypts, all decrypt: put a new one first, keep the old one until everything is re-encrypted.'),
    })
      .prefault({})
      .describe('Keys that encrypt endpoint keys in the store. Default: a key file, mode 0600, made beside the store.'),
    operator: operator(context).optional(),
    retention: retention(),
    limits: limits(),
    log: section({ level: oneOf(['debug', 'info', 'warn', 'error']).default('info').describe('The least that is logged.') })
      .prefault({})
      .describe('The log: JSON lines on standard output.'),
  })
    .transform(({ shutdownTimeout, operator: notified, ...rest }) => ({
      ...rest,
      shutdownTimeoutMs: shutdownTimeout,
      operator: notified ?? null,
    }))
    .describe('Configuration of parcel relay.')
}

function listen() {
  const listener = (address: string, port: number, purpose: string) =>
    section({
      host: host.default(address).describe('Address to listen on.'),
      port: whole(0, 65_535).default(port).describe('Port to listen on; 0: any free one.'),
      tls: section({
        certFile: text.describe('PEM file with the certificate chain.'),
        keyFile: text.describe('PEM file with its private key.'),
      })
        .optional()
        .describe('Speak HTTPS here. Without it put a TLS proxy in front of whatever is public.'),
      trustProxy: list(cidr, '[10.0.0.0/8]').default([]).describe('Networks of proxies whose X-Forwarded-For is believed. Default: none.'),
    })
      .transform(({ tls, ...rest }) => ({ ...rest, tls: tls ?? null }))
      .prefault({})
      .describe(purpose)
  return section({
    public: listener('0.0.0.0', 8080, 'Where the carrier pushes: the webhook path and /healthz, nothing else.'),
    internal: listener('127.0.0.1', 8081, 'For apps, operators, the portal and metrics.'),
  })
    .prefault({})
    .describe('The two addresses the relay listens on.')
}

function store(context: SchemaContext) {
  const problem = (value: string) =>
    /^sqlite:[^\s].*$/.test(value) || isPostgresUrl(value) ? null : 'must be sqlite:PATH or postgres://user:password@host:5432/database'
  return secret(context, { problem })
    .transform((location) => {
      const written = location.reveal()
      if (written.startsWith('sqlite:')) return { engine: 'sqlite' as const, path: written.slice('sqlite:'.length) }
      return { engine: 'postgres' as const, url: location }
    })
    .prefault('sqlite:data/relay.db')
    .describe(
      'sqlite:PATH (PATH relative to the working directory) or postgres://user:password@host:5432/database, which this version refuses.',
    )
}

function webhook(context: SchemaContext) {
  return section(
    {
      path: webhookPath.default('/webhooks/status').describe('The exact path the carrier posts to.'),
      sharedKeys: list(secret(context, { warning: looksWeak }), '[{ env: RELAY_SHARED_KEY }]')
        .min(1, { error: 'must hold at least one key, such as [{ env: RELAY_SHARED_KEY }]' })
        .describe("The carrier's signing keys. Any may match: list the new and the old one while rotating."),
      bodyBytesMax: size(1024, 67_108_864).prefault(262_144).describe('The largest push that is accepted; a larger one is answered 413.'),
    },
    'at least sharedKeys: [{ env: RELAY_SHARED_KEY }]',
  ).describe('How the carrier pushes.')
}

function serve() {
  const refresh = z.union([z.literal('never'), duration('1s', '365d')], { error: 'must be never, or a duration such as 30m' })
  return section({
    notFoundFor: duration('0s', '7d').prefault('5m').describe('How long the carrier\'s "not found" is believed before it is asked again.'),
    fetchUnknown: flag.default(true).describe('Ask the carrier about an identifier nobody has asked for yet.'),
    fetchMissingLanguage: flag.default(true).describe('Ask the carrier for texts in a language that entries lack.'),
    refreshOlderThan: refresh.prefault('never').describe('Ask the carrier first when it was last heard longer ago than this.'),
  })
    .transform(({ notFoundFor, refreshOlderThan, ...rest }) => ({
      ...rest,
      notFoundForMs: notFoundFor,
      refreshOlderThanMs: refreshOlderThan === 'never' ? null : refreshOlderThan,
    }))
    .prefault({})
    .describe('How questions from apps are answered.')
}

function app(context: SchemaContext) {
  const PHC = /^\$argon2id\$v=19\$m=\d{1,7},t=\d{1,3},p=\d{1,3}\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{22,86}$/
  const problem = (value: string) =>
    PHC.test(value)
      ? null
      : 'must be an argon2id hash that begins with $argon2id$: make one with `parcel-relay hash-password`, write it in quotes'
  return section({
    username: text.describe('The name it logs in with.'),
    passwordHash: secret(context, { problem }).describe('What `parcel-relay hash-password` printed.'),
    scopes: list(oneOf(['status', 'admin']), '[status]')
      .min(1, { error: 'must hold at least one of status, admin' })
      .describe('status: the status API and the feed; admin: everything under /relay and the portal.'),
  })
}

function atRestKey(context: SchemaContext) {
  const problem = (value: string) =>
    /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(value) ? null : 'must be 32 bytes in Base64: make them with `parcel-relay generate-key`'
  return secret(context, { problem })
}

function retention() {
  return section({
    raw: duration('1s', '3650d')
      .prefault('90d')
      .describe('How long the bytes of pushes and answers are kept; what was learnt from them stays.'),
    history: duration('1s', '3650d').prefault('400d').describe('How long a parcel is kept after its last entry.'),
    deliveries: duration('1s', '3650d').prefault('30d').describe('How long settled deliveries are kept.'),
  })
    .transform(({ raw, history, deliveries }) => ({ rawMs: raw, historyMs: history, deliveriesMs: deliveries }))
    .prefault({})
    .describe('How long things are kept. This version deletes nothing; only `history` has an effect: an older push is not recorded.')
}

function limits() {
  return section({
    bodyBytesInFlight: size(65_536, 8_589_934_592).prefault('32MB').describe('Bytes of unverified pushes held at once; beyond it: 503.'),
    requestsWaiting: whole(1, 1_000_000)
      .default(2000)
      .describe(
        'Pipelined requests that wait behind others, over all connections of a listener; beyond it the connection with most is closed.',
      ),
    feedFollowers: whole(1, 100_000)
      .default(1000)
      .describe('Streams and waiting requests of the feed at once. When all are taken, one app keeps at most a quarter while others ask.'),
    connections: whole(1, 1_000_000).default(4096).describe('Open connections per listener.'),
    batch: whole(1, 10_000).default(256).describe('The most observations in one transaction.'),
    cacheBytes: size(0, 68_719_476_736).prefault('64MB').describe('Memory for ready-made answers; 0: no cache.'),
    freeSpaceMin: size(0, 1_099_511_627_776).prefault('256MB').describe('Free disk space below which pushes are answered 503.'),
    failuresPerMinute: whole(1, 1_000_000)
      .default(600)
      .describe(
        'Bad signatures, tokens or passwords per address, listener and minute before 429, and wrong passwords per address and user before none is looked at.',
      ),
    unknownPerMinute: whole(1, 1_000_000).default(600).describe('Unknown identifiers per app and minute before 429.'),
  })
    .transform(({ freeSpaceMin, ...rest }) => ({ ...rest, freeSpaceBytesMin: freeSpaceMin }))
    .prefault({})
    .describe('Bounds that keep the relay from running out of memory, disk or connections.')
}
