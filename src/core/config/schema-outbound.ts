import { z } from 'zod'
import { fixedValueProblem, isStandardKey, STANDARD_KEY_RULE } from '../domain/delivery/endpoint-keys.ts'
import { filterSchemas, headersOf, type Kinds, settingSchemas } from '../domain/delivery/endpoint-settings.ts'
import { DOCUMENTED_STATUSES } from '../domain/history/observation.ts'
import { refusingProto, someOf } from '../domain/read-input.ts'
import { suggestName } from '../domain/text.ts'
import { type AddressRefusal, parseAllowed, parseNetwork, refuseNetwork } from '../outbound/address-rules.ts'
import { looksWeak, type SchemaContext, secret } from './secret-setting.ts'
import {
  cron,
  duration,
  factor,
  flag,
  fraction,
  isProxyUrl,
  language,
  list,
  oneOf,
  readUrl,
  section,
  text,
  timeOfDay,
  webUrl,
  webUrlProblem,
  whole,
  zone,
} from './values.ts'

/** Endings of an address that people may have copied from the carrier's documentation, although the relay adds these paths itself. */
const API_PATH = /(?:\/+(?:v1|auth|status))+\/*$|\/+auth\/+token\/*$/i

function withoutApiPath(address: string): string {
  const [end = ''] = API_PATH.exec(readUrl(address)?.pathname ?? '') ?? []
  return address.slice(0, address.length - end.length)
}

function proxy(context: SchemaContext) {
  const problem = (value: string) => (isProxyUrl(value) ? null : 'must be the address of an HTTP proxy, such as http://proxy.internal:3128')
  return secret(context, { problem }).optional().describe('HTTP proxy to go through.')
}

const caFile = text
  .optional()
  .describe('PEM file with a private CA to trust here, in addition to the public ones. A reload reads it again.')

export function carrierUpstream(context: SchemaContext) {
  const address = webUrl
    .refine((value) => !value.includes('?'), { error: 'must not have a ?query' })
    .refine((value) => withoutApiPath(value) === value, {
      error: ({ input }) =>
        `must end before the carrier's own paths, /v1/status and /auth/token, which the relay adds: write ${withoutApiPath(String(input))}`,
    })
  return section(
    {
      baseUrl: address.describe("The carrier's API, without /v1."),
      authUrl: webUrl.optional().describe('The address that issues tokens, to which the password is sent. Default: {baseUrl}/auth/token.'),
      username: text.describe("The relay's user name at the carrier."),
      password: secret(context).describe("The relay's password at the carrier."),
      languages: list(language, '[en, sv]')
        .min(1, { error: 'must hold at least one language, such as [en]' })
        .refine((tags) => new Set(tags).size === tags.length, { error: 'must not name a language twice' })
        .prefault(['en', 'sv'])
        .describe('Languages to serve; the first is the default and the language of polls.'),
      timeout: duration('100ms', '10m').prefault('10s').describe('Time for one call, from its start to the last byte of the answer.'),
      ratePerSecond: fraction(0.01, 1000).default(5).describe('Calls per second; every call counts, tokens included.'),
      callsPerDay: whole(1, 1_000_000_000).default(50_000).describe('Calls per UTC day; every call counts, tokens included.'),
      concurrency: whole(1, 1000).default(4).describe('Calls at the same time.'),
      allowHttp: flag
        .default(false)
        .describe('Allow plain http to a carrier outside loopback; the password and every token are then sent unencrypted.'),
      proxy: proxy(context),
      caFile,
    },
    'at least baseUrl, username and password',
  )
    .transform(({ baseUrl, authUrl, timeout, proxy: via, caFile: ca, ...rest }) => {
      const base = baseUrl.replace(/\/+$/, '')
      return {
        ...rest,
        baseUrl: base,
        authUrl: authUrl ?? `${base}/auth/token`,
        timeoutMs: timeout,
        proxy: via ?? null,
        caFile: ca ?? null,
      }
    })
    .describe('The carrier: where its API is and how hard the relay may use it.')
}

export function carrierPoll(context: SchemaContext) {
  return section({
    cron: cron.default('* * * * *').describe('When the poller wakes. poll.cadence decides which parcels it then asks about.'),
    cadence: cadence(context),
    finished: section({
      tail: list(duration('1s', '365d'), '[1h, 24h, 72h]')
        .prefault(['1h', '24h', '72h'])
        .describe(
          'Closing checks of a finished parcel, timed from the delivery; after the last one polling stops. A parcel is finished while its latest entry has the status DeliverySucceeded.',
        ),
      staleAfter: duration('1s', '3650d').prefault('30d').describe('Polling of a parcel stops after this long without a new entry.'),
    })
      .transform(({ tail, staleAfter }) => ({ tailMs: tail, staleAfterMs: staleAfter }))
      .prefault({})
      .describe('When polling of a parcel ends. A push, or an app that asks, starts it again.'),
    missedPushGrace: duration('0s', '30d').prefault('10m').describe('How late a push may be before it counts as missed.'),
    quietHours: section({
      from: timeOfDay.describe('Start, such as "00:00".'),
      to: timeOfDay.describe('End, such as "05:00"; earlier than `from`: the next day.'),
      zone: zone.default('UTC').describe('Time zone of both times.'),
    })
      .optional()
      .describe('Hours without scheduled polls. Requests from apps may still call the carrier.'),
  })
    .transform(({ missedPushGrace, quietHours, ...rest }) => ({
      ...rest,
      missedPushGraceMs: missedPushGrace,
      quietHours: quietHours ?? null,
    }))
    .prefault({})
    .describe('How often the relay polls watched parcels.')
}

function cadence(context: SchemaContext) {
  const every = duration('1s', '365d')
  const named = {
    Created: every.prefault('2h').describe('While announced but not yet handed in.'),
    Ingested: every.prefault('1h').describe('While on its way.'),
    DeliveryStarted: every.prefault('15m').describe('While out for delivery.'),
    default: every.prefault('1h').describe('For every other status.'),
    whenPushIsHealthy: factor()
      .prefault('x4')
      .describe(
        'While pushes are healthy, polls are this many times rarer. Healthy: few pushes go into quarantine, and an estimated 12 % at most are lost (8 % after trouble).',
      ),
  }
  const statuses = z
    .object(named, { error: 'must be a group of settings: a status and how often to poll, such as Created: 2h' })
    .catchall(every.describe('For any other status of the carrier.'))
  return refusingProto(statuses, 'cannot be a key here')
    .transform(({ default: defaultMs, whenPushIsHealthy, ...byStatus }, issues) => {
      if (context.warn) {
        for (const status of Object.keys(byStatus)) {
          if (DOCUMENTED_STATUSES.includes(status)) continue
          const near = suggestName(status, [...DOCUMENTED_STATUSES, ...Object.keys(named)])
          const message = `is not a status the carrier is known to send${near === null ? '' : `; did you mean ${near}?`}`
          issues.addIssue({ code: 'custom', path: [status], message, params: { warning: true } })
        }
      }
      // Remove the prototype, so that looking up a status named `constructor` finds nothing.
      const byStatusMs: Record<string, number> = { ...byStatus }
      Object.setPrototypeOf(byStatusMs, null)
      return { byStatusMs, defaultMs, whenPushIsHealthy }
    })
    .prefault({})
    .describe('How often to poll a parcel, by its latest status. Any status of the carrier can be a key.')
}

const HOST_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$/
const TARGET_RULE = 'must be a network such as 10.0.0.0/8, an address, a host name, or an address with its port such as 127.0.0.1:9000'

const NEVER: Readonly<Partial<Record<AddressRefusal, string>>> = {
  link_local: 'is link-local, the range of cloud metadata services',
  metadata: 'is a cloud metadata service, which hands out credentials',
  special: 'is not the address of a host (it is unspecified, broadcast, multicast, or embeds another address)',
}

/** The schema of an entry of `delivery.allowNetworks`. It rejects an entry that names only addresses to which the relay never sends. */
const allowedTarget = z
  .string({ error: TARGET_RULE })
  .meta({ $comment: 'network, address, address:port or host name' })
  .superRefine((value, context) => {
    const allowed = parseAllowed(value)
    const isNamed = allowed.kind === 'host' && HOST_NAME.test(value) && value.length <= 253 && !/^[\d.]+$/.test(value)
    if (allowed.kind === 'host' && !isNamed) {
      context.addIssue({ code: 'custom', message: TARGET_RULE })
      return
    }
    if (allowed.kind === 'origin' && (allowed.port < 1 || allowed.port > 65_535)) {
      context.addIssue({ code: 'custom', message: 'must have a port from 1 to 65535' })
      return
    }
    const network = allowed.kind === 'network' ? allowed.network : allowed.kind === 'origin' ? parseNetwork(allowed.address) : null
    const refusal = network === null ? null : refuseNetwork(network)
    const reason = refusal === null ? undefined : NEVER[refusal]
    if (reason !== undefined) context.addIssue({ code: 'custom', message: `${reason}: the relay never sends there, so remove it` })
  })

const steps = () =>
  list(duration('0s', '365d'), '[5s, 5m, 30m]').min(1, { error: 'must hold at least one duration, such as [5s, 5m, 30m]' })

const optional = <Value>(schema: z.ZodType<Value>, words: string) =>
  schema
    .optional()
    .describe(words)
    .transform((value) => value ?? null)

/** How the config sets each kind of setting. */
const SETTING = {
  flag: ({ config }) => flag.default(false).describe(config),
  choice: ({ names, config }) => oneOf(names).default(names[0]).describe(config),
  several: ({ names, preset, config }) =>
    someOf(names)
      .prefault([...preset])
      .describe(config),
  either: ({ config }) => optional(flag, config),
  amount: ({ config }, min, max) => optional(fraction(min, max), config),
  count: ({ config }, min, max) => optional(whole(min, max), config),
  waits: ({ config }) => optional(steps(), config),
  values: ({ example, config, form }) => optional(list(form === undefined ? text : text.regex(...form), example), config),
} satisfies Kinds

export function endpoint(context: SchemaContext) {
  const { signature, events, backfill, ...settings } = settingSchemas(SETTING)
  return section({
    name: text.describe('A unique label.'),
    url: webUrl.describe('Where to post.'),
    sharedKey: secret(context, { warning: looksWeak }).describe('The key that signs its events.'),
    enabled: flag.default(true).describe('false: deliveries wait.'),
    signature,
    filters: section(filterSchemas(SETTING)).prefault({}).describe('Send only events that pass all of these.'),
    events,
    backfill,
    from: z
      .union([z.literal('now'), whole(0, Number.MAX_SAFE_INTEGER)], { error: 'must be now, or a sequence of the feed such as 0' })
      .default('now')
      .describe(
        'Where a new endpoint starts: now, or a sequence of the feed; 0: everything the feed holds. Ignored for an existing endpoint.',
      ),
    ...settings,
    headers: headersOf(
      secret(context, { problem: fixedValueProblem }),
      'must be a group of headers, such as { Authorization: { env: SHOP_TOKEN } }',
    )
      .prefault({})
      .describe('Further headers of its requests, such as Authorization, with secret values.'),
    clientCert: section({
      certFile: text.describe('PEM file with the certificate.'),
      keyFile: text.describe('PEM file with its key.'),
    })
      .optional()
      .describe('The certificate that the relay shows when the endpoint asks for one. A reload reads the files again.'),
    proxy: proxy(context),
    caFile,
  }).transform(({ rate, schedule, from, proxy: via, caFile: ca, clientCert, ...rest }, issues) => {
    if (rest.signature === 'standard-webhooks' && !isStandardKey(rest.sharedKey.reveal()))
      issues.addIssue({ code: 'custom', path: ['sharedKey'], message: STANDARD_KEY_RULE })
    return {
      ...rest,
      ratePerSecond: rate,
      scheduleMs: schedule,
      from: from === 'now' ? null : from,
      proxy: via ?? null,
      caFile: ca ?? null,
      clientCert: clientCert ?? null,
    }
  })
}

export function delivery() {
  return section({
    schedule: steps()
      .prefault(['5s', '5m', '30m', '2h', '5h', '10h', '10h'])
      .describe(
        'Waits between attempts. When they are used up, a delivery is dead if its endpoint has accepted something since the delivery first failed. Otherwise the last wait repeats.',
      ),
    jitter: fraction(0, 1).default(0.2).describe('The random fraction of a wait, which spreads retries.'),
    timeout: duration('100ms', '10m').prefault('15s').describe('Time for one attempt.'),
    perEndpoint: whole(1, 1000)
      .default(8)
      .describe(
        'Attempts at the same time to one endpoint. After the relay is killed, up to three times as many events may come again (eight times on PostgreSQL).',
      ),
    removeAfter: duration('1s', '365d')
      .prefault('15m')
      .describe('An endpoint that no config names any more is paused, and removed after this time. DELETE removes it at once.'),
    allowNetworks: list(allowedTarget, '[10.0.0.0/8]')
      .default(['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'])
      .describe(
        'Where endpoints may be: networks, addresses, host names, and address:port for a port of the relay itself. Default: the private networks.',
      ),
  })
    .transform(({ schedule, timeout, removeAfter, ...rest }) => ({
      ...rest,
      scheduleMs: schedule,
      timeoutMs: timeout,
      removeAfterMs: removeAfter,
    }))
    .prefault({})
    .describe('How the relay delivers to endpoints.')
}

export function operator(context: SchemaContext) {
  return section({
    url: secret(context, { problem: webUrlProblem }).describe(
      'Where to post; may be a secret. Its host need not be in delivery.allowNetworks.',
    ),
    sharedKey: secret(context, { warning: looksWeak })
      .optional()
      .describe('The key that signs operator events. Required with format relay, and not used otherwise.'),
    format: oneOf(['relay', 'slack', 'teams', 'ntfy'])
      .default('relay')
      .describe('relay: signed events as JSON; slack, teams, ntfy: a message for people, with a link to the portal (portal.publicUrl).'),
    failingAfter: duration('1s', '5d')
      .prefault('15m')
      .describe('Operators are notified when all attempts at an endpoint have failed for this long.'),
  })
    .transform(({ failingAfter, sharedKey, ...rest }, issues) => {
      if (sharedKey === undefined && rest.format === 'relay')
        issues.addIssue({
          code: 'custom',
          path: ['sharedKey'],
          message: 'must be { env: NAME } or { file: PATH }, unless format is slack, teams or ntfy',
        })
      return { ...rest, sharedKey: sharedKey ?? null, failingAfterMs: failingAfter }
    })
    .describe('Where to post operator events, such as a disabled endpoint or refused credentials.')
}
