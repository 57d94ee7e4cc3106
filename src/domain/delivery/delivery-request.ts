import { type Entry, languagesOf } from '../history/history.ts'
import type { Texts } from '../history/status-entry.ts'
import { createMac, type Mac } from '../ingest/signature.ts'
import { formatWebhookTime } from '../instant.ts'
import type { Endpoint } from './endpoint.ts'
import type { FixedHeaders } from './fixed-headers.ts'
import { fingerprintKey } from './key-fingerprint.ts'
import { standardReadings } from './standard-key.ts'

/** The content of a delivery. It is the same at every attempt. */
export interface DeliveryContent {
  /**
   * The id of the event. Retries and replays have the same id, so that receivers can recognise duplicates. It has letters, digits, `_` and
   * `-`.
   */
  readonly webhookId: string
  readonly sequence: number
  /** The sequence of the event that was queued before for the same parcel and endpoint; 0: there was none (DOMAIN 7.3). */
  readonly previousSequence: number
  /** The exact bytes of a push, or `encodeEvent` of a polled entry (DOMAIN 7.1). */
  readonly body: Uint8Array
}

/** Signs for one endpoint. It is made once, because preparing a key costs more than the HMAC of an event. */
export interface DeliverySigner {
  /**
   * All headers of an attempt, by lower-case name. `exchanged`: the current and the next key change places.
   *
   * @throws RangeError if `webhookId` has other characters than allowed.
   */
  headers(content: DeliveryContent, nowMs: number, exchanged?: 'exchanged'): Readonly<Record<string, string>>
  /** Whether there is a next key. */
  readonly hasNext: boolean
  readonly fingerprints: KeyFingerprints
}

/** The fingerprints of an endpoint's keys (`fingerprintKey`). `next`: of the key that will replace the current one; null: there is none. */
export interface KeyFingerprints {
  readonly current: string
  readonly next: string | null
}

/** The keys of an endpoint as text. */
export interface SigningKeys {
  readonly current: string
  /** The key that will replace the current one. */
  readonly next?: string | undefined
  /** The key that the current one replaced. */
  readonly previous?: string | undefined
}

/** Headers that do not depend on the event. */
export interface ConstantHeaders {
  readonly userAgent: string
  /** The fixed headers of the endpoint. A `user-agent` among them replaces the relay's. */
  readonly fixed?: FixedHeaders
}

/** One signature per header, as the specification requires. */
const SIGNATURE = 'x-service-hmac-sha256'
const NEXT_SIGNATURE = 'x-service-hmac-sha256-next'
const PREVIOUS_SIGNATURE = 'x-service-hmac-sha256-previous'
const WEBHOOK_ID = /^[A-Za-z0-9_-]{1,128}$/

/**
 * Creates the signer of an endpoint (CONTRACT, "Pushes to endpoints"). It always sets the carrier's own header, with the key as UTF-8 bytes
 * (spec, "Authentication").
 */
export function createDeliverySigner(keys: SigningKeys, signature: Endpoint['signature'], given: ConstantHeaders): DeliverySigner {
  const constant = { 'user-agent': given.userAgent, ...given.fixed }
  const macOf = (key: string | undefined) => (key === undefined ? undefined : createMac(Buffer.from(key, 'utf8')))
  const current = createMac(Buffer.from(keys.current, 'utf8'))
  const [next, previous] = [macOf(keys.next), macOf(keys.previous)]
  const all = [keys.current, keys.next, keys.previous].filter((key) => key !== undefined)
  const standardKeys = signature === 'standard-webhooks' ? all.flatMap(standardReadings) : []
  return {
    hasNext: next !== undefined,
    fingerprints: { current: fingerprintKey(keys.current), next: keys.next === undefined ? null : fingerprintKey(keys.next) },
    headers(content, nowMs, exchanged) {
      const { webhookId, sequence, previousSequence, body } = content
      // A full stop separates the parts that are signed. With one in the id, a signature could fit two different messages.
      if (!WEBHOOK_ID.test(webhookId)) throw new RangeError('a webhook-id is made of letters, digits, _ and -')
      const [first, second] = exchanged === undefined || next === undefined ? [current, next] : [next, current]
      const headers = { ...constant, ...eventHeaders({ webhookId, sequence, previousSequence }), [SIGNATURE]: first(body) }
      if (second === undefined && previous === undefined && standardKeys.length === 0) return headers
      return {
        ...headers,
        ...(second === undefined ? {} : { [NEXT_SIGNATURE]: second(body) }),
        ...(previous === undefined ? {} : { [PREVIOUS_SIGNATURE]: previous(body) }),
        ...(standardKeys.length === 0 ? {} : standardHeaders(standardKeys, content, nowMs)),
      }
    },
  }
}

/** The headers that identify the event, without the signatures. */
export function eventHeaders({ webhookId, sequence, previousSequence }: Omit<DeliveryContent, 'body'>) {
  return {
    'content-type': 'application/json',
    'webhook-id': webhookId,
    'relay-sequence': String(sequence),
    'relay-previous-sequence': String(previousSequence),
  }
}

/** The headers of the Standard Webhooks specification. They are signed again at every attempt, because receivers refuse old timestamps. */
function standardHeaders(keys: readonly Mac[], { webhookId, body }: DeliveryContent, nowMs: number): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000))
  const signatures = keys.map((mac) => `v1,${mac(`${webhookId}.${timestamp}.`, body)}`)
  return { 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}

/** An entry that no push reported, with the values of its parcel as a whole. */
export interface PolledEvent {
  readonly entry: Entry
  /**
   * The identifiers in the order of the carrier's answer. An event names at least one: if the answer listed none, this is the identifier
   * that was polled.
   */
  readonly trackingIds: readonly string[]
  readonly distributionType: string
}

/** The maximum of identifiers in an event (DOMAIN 5.3). */
const TRACKING_IDS_MAX = 100

/**
 * Encodes a polled entry as the carrier would have pushed it (spec, "Webhook event payload"): with milliseconds, `null` for no location,
 * and texts in every known language. Texts that consumers may not see are left out (DOMAIN 2.6).
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

/** The texts of an entry. An empty text is known to be empty. `null` means that there is none, which this format cannot express. */
function localizedTexts(entry: Entry, field: keyof Texts): readonly { readonly value: string; readonly languageCode: string }[] {
  return languagesOf(entry).flatMap((languageCode) => {
    const value = entry.texts[languageCode]?.[field]
    return typeof value === 'string' ? [{ value, languageCode }] : []
  })
}
