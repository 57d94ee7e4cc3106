import { formatWebhookTime } from '../instant.ts'

/**
 * What a test push carries: the shape of an event, and no parcel. A receiver that takes it for one finds nobody to attach it to; a relay
 * that is an endpoint of this one quarantines it (DOMAIN 5.3).
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
