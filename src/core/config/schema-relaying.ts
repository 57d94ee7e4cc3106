import { z } from 'zod'
import { fixedValueProblem, isStandardKey, STANDARD_KEY_RULE } from '../domain/delivery/endpoint-keys.ts'
import { filterSchemas, headersOf, type Kinds, settingSchemas } from '../domain/delivery/endpoint-settings.ts'
import { allowedTarget } from './allowed-target.ts'
import { caFile, proxy } from './schema-carrier.ts'
import { looksWeak, type SchemaContext, secret } from './secret-setting.ts'
import { duration, flag, fraction, list, oneOf, section, text, webUrl, webUrlProblem, whole } from './values.ts'

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
  either: ({ config }) => optional(flag, config),
  amount: ({ config }, min, max) => optional(fraction(min, max), config),
  count: ({ config }, min, max) => optional(whole(min, max), config),
  waits: ({ config }) => optional(steps(), config),
  values: ({ example, config, form }) => optional(list(form === undefined ? text : text.regex(...form), example), config),
} satisfies Kinds

export function endpoint(context: SchemaContext) {
  const { signature, backfill, ...settings } = settingSchemas(SETTING)
  return section({
    name: text.describe('A unique label.'),
    url: webUrl.describe('Where to post.'),
    sharedKey: secret(context, { warning: looksWeak }).describe('The key that signs its events.'),
    enabled: flag.default(true).describe('false: deliveries wait.'),
    signature,
    filters: section(filterSchemas(SETTING)).prefault({}).describe('Send only events that pass all of these.'),
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
