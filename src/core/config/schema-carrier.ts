import { z } from 'zod'
import { DOCUMENTED_STATUSES } from '../domain/history/observation.ts'
import { suggestName } from '../domain/text.ts'
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

/** Endings of an address that people may have copied from the carrier's documentation, although the relay adds these paths itself. */
const API_PATH = /(?:\/+(?:v1|auth|status))+\/*$|\/+auth\/+token\/*$/i

function withoutApiPath(address: string): string {
  const [end = ''] = API_PATH.exec(readUrl(address)?.pathname ?? '') ?? []
  return address.slice(0, address.length - end.length)
}

export function proxy(context: SchemaContext) {
  const problem = (value: string) => (isProxyUrl(value) ? null : 'must be the address of an HTTP proxy, such as http://proxy.internal:3128')
  return secret(context, { problem }).optional().describe('HTTP proxy to go through.')
}

export const caFile = text
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
  return z
    .object(named, { error: 'must be a group of settings: a status and how often to poll, such as Created: 2h' })
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
      // Remove the prototype, so that looking up a status named `constructor` finds nothing.
      const byStatusMs: Record<string, number> = { ...byStatus }
      Object.setPrototypeOf(byStatusMs, null)
      return { byStatusMs, defaultMs, whenPushIsHealthy }
    })
    .prefault({})
    .describe('How often to poll a parcel, by its latest status. Any status of the carrier can be a key.')
}
