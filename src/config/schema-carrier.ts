import { z } from 'zod'
import { DOCUMENTED_STATUSES } from '../domain/history/status-entry.ts'
import { suggestName } from '../domain/near-name.ts'
import { type SchemaContext, secret } from './secret-setting.ts'
import {
  cron,
  duration,
  factor,
  flag,
  fraction,
  isProxyUrl,
  language,
  list,
  readUrl,
  section,
  text,
  timeOfDay,
  webUrl,
  whole,
  zone,
} from './values.ts'

/** What is copied along from an example of a whole address. */
const API_PATH = /(?:\/+(?:v1|auth|status))+\/*$|\/+auth\/+token\/*$/i

function withoutApiPath(address: string): string {
  const [end = ''] = API_PATH.exec(readUrl(address)?.pathname ?? '') ?? []
  return address.slice(0, address.length - end.length)
}

export function proxy(context: SchemaContext) {
  const problem = (value: string) => (isProxyUrl(value) ? null : 'must be the address of an HTTP proxy, such as http://proxy.internal:3128')
  return secret(context, { problem }).optional().describe('HTTP proxy to go through.')
}

export const caFile = text.optional().describe('PEM file with the private CA to trust here, in addition to the public ones.')

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
      authUrl: webUrl.optional().describe('Where tokens are asked for. Default: {baseUrl}/auth/token.'),
      username: text.describe("The relay's user name at the carrier."),
      password: secret(context).describe("The relay's password at the carrier."),
      languages: list(language, '[en, sv]')
        .min(1, { error: 'must hold at least one language, such as [en]' })
        .refine((tags) => new Set(tags).size === tags.length, { error: 'must not name a language twice' })
        .prefault(['en', 'sv'])
        .describe('Languages to offer; the first is the default, and the one polls ask in.'),
      timeout: duration('100ms', '10m').prefault('10s').describe('For one call, from its start to the last byte of its answer.'),
      ratePerSecond: fraction(0.01, 1000).default(5).describe('Calls per second, everything counted.'),
      callsPerDay: whole(1, 1_000_000_000).default(50_000).describe('Calls per day, everything counted.'),
      concurrency: whole(1, 1000).default(4).describe('Calls at the same time.'),
      allowHttp: flag
        .default(false)
        .describe('Allow a carrier outside loopback over plain http: the password and every token travel in clear.'),
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
        .describe('Closing checks, counted from the delivery; after the last one polling stops.'),
      staleAfter: duration('1s', '3650d').prefault('30d').describe('A parcel without news for this long is given up.'),
    })
      .transform(({ tail, staleAfter }) => ({ tailMs: tail, staleAfterMs: staleAfter }))
      .prefault({})
      .describe('When polling of a parcel ends. A push or a question starts it again.'),
    missedPushGrace: duration('0s', '30d').prefault('10m').describe('How late a push may be before it counts as missed.'),
    quietHours: section({
      from: timeOfDay.describe('Begin, such as "00:00".'),
      to: timeOfDay.describe('End, such as "05:00"; earlier than `from`: the next day.'),
      zone: zone.default('UTC').describe('Time zone of both.'),
    })
      .optional()
      .describe('Hours in which the schedule asks nothing. Questions from apps still do.'),
  })
    .transform(({ missedPushGrace, quietHours, ...rest }) => ({
      ...rest,
      missedPushGraceMs: missedPushGrace,
      quietHours: quietHours ?? null,
    }))
    .prefault({})
    .describe('How often the carrier is asked about watched parcels.')
}

function cadence(context: SchemaContext) {
  const every = duration('1s', '365d')
  const named = {
    Created: every.prefault('2h').describe('While announced, not yet handed in.'),
    Ingested: every.prefault('1h').describe('While on its way.'),
    DeliveryStarted: every.prefault('15m').describe('While out for delivery.'),
    default: every.prefault('1h').describe('For every status without a rule of its own.'),
    whenPushIsHealthy: factor().prefault('x4').describe('How much rarer to ask while pushes arrive as they should.'),
  }
  return z
    .object(named, { error: 'must be a group of settings: a status and how often to ask, such as Created: 2h' })
    .catchall(every.describe('For any other status of the carrier.'))
    .transform(({ default: defaultMs, whenPushIsHealthy, ...byStatus }, issues) => {
      if (context.warn) {
        for (const status of Object.keys(byStatus)) {
          if (DOCUMENTED_STATUSES.includes(status)) continue
          const near = suggestName(status, [...DOCUMENTED_STATUSES, ...Object.keys(named)])
          const message = `is not a status the carrier is known to send${near === null ? '' : `; did you mean ${near}?`}`
          issues.addIssue({ code: 'custom', path: [status], message, params: { warning: true } })
        }
      }
      // No prototype: the carrier's word is looked up in it, and `constructor` must find nothing.
      const byStatusMs: Record<string, number> = { ...byStatus }
      Object.setPrototypeOf(byStatusMs, null)
      return { byStatusMs, defaultMs, whenPushIsHealthy }
    })
    .prefault({})
    .describe('How often to ask about a parcel, by its latest status. Any status the carrier sends can be a key.')
}
