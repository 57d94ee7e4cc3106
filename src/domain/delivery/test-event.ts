import { formatWebhookTime } from '../instant.ts'

/**
 * The body of a test delivery. It looks like an event, but names no parcel. A receiver that takes it for an event finds no parcel. Another
 * relay quarantines it (DOMAIN 5.3).
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
