import { formatWebhookTime } from '../instant.ts'

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
