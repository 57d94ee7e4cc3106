import { type Entry, languagesOf } from '../history/history.ts'
import type { Texts } from '../history/observation.ts'
import { orderHeaders, type SentOrder } from '../history/order-context.ts'
import { createMac, type Mac } from '../ingest/signature.ts'
import { formatWebhookTime } from '../instant.ts'
import { type FixedHeaders, fingerprintKey, standardReadings } from './endpoint-keys.ts'
import type { Endpoint } from './endpoint-state.ts'
import type { WatchdogEventName } from './watchdog-event.ts'

/** The content of a delivery, which is the same at every attempt. */
export interface DeliveryContent {
  /** The id of the event: letters, digits, `_` and `-`. It stays the same for retries and replays, so that receivers can recognise duplicates. */
  readonly webhookId: string
  readonly sequence: number
  /** The sequence of the previous event that was queued for the same parcel and endpoint; 0: there was none (DOMAIN 7.3). */
  readonly previousSequence: number
  /** The exact bytes of a push, or the result of `encodeEvent` for a polled entry (DOMAIN 7.1). */
  readonly body: Uint8Array
}

/** Signs the requests to one endpoint. It is made once per endpoint, because preparing a key takes longer than signing an event. */
export type DeliverySigner = ReturnType<typeof createDeliverySigner>

/** `next`: the fingerprint of the key that will replace the current one; null: there is no such key. */
export interface KeyFingerprints {
  readonly current: string
  readonly next: string | null
}

/** The keys of an endpoint as text. */
export interface SigningKeys {
  readonly current: string
  /** The key that will replace the current one. */
  readonly next?: string | undefined
}

/** The headers that are the same for all events. */
export interface ConstantHeaders {
  readonly userAgent: string
  /** The fixed headers of the endpoint. A `user-agent` among them replaces the relay's. */
  readonly fixed?: FixedHeaders
}

/** Each key signs in a header of its own, because the specification allows one signature per header. */
const SIGNATURE = 'x-service-hmac-sha256'
const NEXT_SIGNATURE = 'x-service-hmac-sha256-next'
const WEBHOOK_ID = /^[A-Za-z0-9_-]{1,128}$/

/**
 * Creates the signer of an endpoint (CONTRACT, "Pushes to endpoints"). It always sets the header `x-service-hmac-sha256`, as the carrier does, with
 * the key as UTF-8 bytes (spec, "Authentication").
 */
export function createDeliverySigner(keys: SigningKeys, signature: Endpoint['signature'], given: ConstantHeaders) {
  const constant = { 'user-agent': given.userAgent, ...given.fixed }
  const current = createMac(Buffer.from(keys.current, 'utf8'))
  const next = keys.next === undefined ? undefined : createMac(Buffer.from(keys.next, 'utf8'))
  const all = [keys.current, keys.next].filter((key) => key !== undefined)
  const standardKeys = signature === 'standard-webhooks' ? all.flatMap(standardReadings) : []
  return {
    hasNext: next !== undefined,
    fingerprints: { current: fingerprintKey(keys.current), next: keys.next === undefined ? null : fingerprintKey(keys.next) },
    /**
     * Returns all headers of an attempt, by lower-case name. `exchanged`: the current and the next key change places.
     *
     * @throws RangeError if `webhookId` has other characters than allowed.
     */
    headers(content: DeliveryContent, nowMs: number, exchanged?: 'exchanged'): Readonly<Record<string, string>> {
      const { webhookId, sequence, previousSequence, body } = content
      // Full stops separate the parts that are signed. If the id could contain one, two different messages could have the same signature.
      if (!WEBHOOK_ID.test(webhookId)) throw new RangeError('a webhook-id is made of letters, digits, _ and -')
      const [first, second] = exchanged === undefined || next === undefined ? [current, next] : [next, current]
      const headers = { ...constant, ...eventHeaders({ webhookId, sequence, previousSequence }), [SIGNATURE]: first(body) }
      if (second === undefined && standardKeys.length === 0) return headers
      return {
        ...headers,
        ...(second === undefined ? {} : { [NEXT_SIGNATURE]: second(body) }),
        ...(standardKeys.length === 0 ? {} : standardHeaders(standardKeys, content, nowMs)),
      }
    },
  }
}

export function eventHeaders({ webhookId, sequence, previousSequence }: Omit<DeliveryContent, 'body'>) {
  return {
    'content-type': 'application/json',
    'webhook-id': webhookId,
    'relay-sequence': String(sequence),
    'relay-previous-sequence': String(previousSequence),
  }
}

/** The headers about the order of a parcel and about events of watchdogs. They are not signed, and most deliveries have none. */
export function furtherHeaders(order: SentOrder | null, event: WatchdogEventName | undefined): Readonly<Record<string, string>> {
  return { ...(order === null ? {} : orderHeaders(order)), ...(event === undefined ? {} : { 'relay-event': event }) }
}

/** Returns the headers of the Standard Webhooks specification. Each attempt has a new timestamp, because receivers refuse old ones. */
function standardHeaders(keys: readonly Mac[], { webhookId, body }: DeliveryContent, nowMs: number): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000))
  const signatures = keys.map((mac) => `v1,${mac(`${webhookId}.${timestamp}.`, body)}`)
  return { 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}

/** An entry that no push reported, with the values that all entries of its parcel share. */
export interface PolledEvent {
  readonly entry: Entry
  /**
   * The identifiers in the order of the carrier's answer. If the answer listed none, this is the identifier that was polled, because an event must
   * name one.
   */
  readonly trackingIds: readonly string[]
  readonly distributionType: string
}

/** How many identifiers an event may have (DOMAIN 5.3). */
const TRACKING_IDS_MAX = 100

/**
 * Encodes a polled entry in the form of a push (spec, "Webhook event payload"): its time has milliseconds, a missing location is `null`, and
 * texts are in every known language. Texts that consumers may not see are left out (DOMAIN 2.6).
 */
export function encodeEvent({ entry, trackingIds, distributionType }: PolledEvent): Uint8Array {
  return Buffer.from(
    JSON.stringify({
      status: entry.status,
      detailedStatus: entry.detailedStatus,
      eventTime: formatWebhookTime(entry.atMs),
      location: entry.location === '' ? null : entry.location,
      trackingIds: trackingIds.slice(0, TRACKING_IDS_MAX),
      distributionType,
      displayToConsumer: entry.displayToConsumer,
      consumerDescription: entry.displayToConsumer ? localizedTexts(entry, 'consumer') : [],
      detailedStatusDescription: localizedTexts(entry, 'detailed'),
    }),
  )
}

/** Returns the texts of an entry in each language. A null text is left out, because the format cannot express it. An empty text stays. */
function localizedTexts(entry: Entry, field: keyof Texts): readonly { readonly value: string; readonly languageCode: string }[] {
  return languagesOf(entry).flatMap((languageCode) => {
    const value = entry.texts[languageCode]?.[field]
    return typeof value === 'string' ? [{ value, languageCode }] : []
  })
}

/**
 * Encodes the body of a test delivery. It has the form of an event, but names no parcel. So a receiver that treats it as an event changes no
 * parcel, and another relay quarantines it (DOMAIN 5.3).
 */
export function encodeTestEvent(nowMs: number): Uint8Array {
  return Buffer.from(
    JSON.stringify({
      status: 'RelayTest',
      detailedStatus: 'RelayTest',
      eventTime: formatWebhookTime(nowMs),
      location: null,
      trackingIds: [],
      distributionType: '',
      displayToConsumer: false,
      consumerDescription: [],
      detailedStatusDescription: [{ value: 'A test of this endpoint: no parcel has this event.', languageCode: 'en' }],
    }),
  )
}

export interface PostRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent byte for byte. */
  readonly body: Uint8Array
  readonly route?: Route
  /** Called once the connection is open, right before the first byte is sent. If it returns false, nothing is sent and the result is `withdrawn`. */
  readonly mayLeave?: () => boolean
}

/**
 * How to connect to an endpoint that needs more than its URL. `proxy`: the URL of a proxy. `ca`: a certificate authority (PEM) to trust in
 * addition to the public ones. `client`: a certificate to present to the endpoint.
 */
export interface Route {
  readonly proxy?: string
  readonly ca?: string
  readonly client?: ClientCertificate
  /** The URL to post to, if the URL in the endpoint's settings is masked. */
  readonly url?: string
  /** Whether the request goes to `operator.url`. Its host is always allowed, because the config names it. */
  readonly isOperator?: boolean
}

/** In PEM. */
export interface ClientCertificate {
  readonly cert: string
  readonly key: string
}
