/** The members of an event, in the order in which the carrier's documentation lists them (spec, "Webhook event payload"). */
export const EVENT_MEMBERS = [
  'status',
  'detailedStatus',
  'eventTime',
  'location',
  'trackingIds',
  'distributionType',
  'displayToConsumer',
  'consumerDescription',
  'detailedStatusDescription',
] as const
