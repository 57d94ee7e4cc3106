import type { RetentionStage } from './retention.ts'

/** The name of the data that each stage of retention removes, for people. */
export const RETENTION_TITLES: Readonly<Record<RetentionStage, string>> = {
  overdue: 'Deliveries that wait too long',
  deliveries: 'Deliveries that have ended',
  pushBytes: 'Bytes of pushes',
  answerBytes: 'Bytes of answers',
  parcels: 'Parcels',
  texts: 'Texts that no parcel uses any more',
  unrecorded: 'Pushes without a parcel',
  feed: 'Events of the feed',
  composed: 'Bodies of composed events',
  audit: 'Audit trail, operator events, tallies',
}
