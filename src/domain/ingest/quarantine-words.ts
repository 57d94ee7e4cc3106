import type { QuarantineReason } from '../history/observation.ts'

/** Describes each reason for quarantine, in a few words for tables, and as a sentence. */
const REASONS: Readonly<Record<QuarantineReason, readonly [short: string, sentence: string]>> = {
  content_encoding: ['it is compressed', 'It is compressed, as its Content-Encoding says. The relay never inflates what it received.'],
  utf8: ['it is not UTF-8', 'It is not UTF-8, or it begins with a byte order mark. The carrier must send JSON in UTF-8.'],
  json_syntax: ['it is not JSON', 'It is not JSON: it may have been cut off, or be something else.'],
  too_deep: ['it nests more than 64 levels deep', 'It nests more than 64 levels deep. An event of the carrier has only a few levels.'],
  schema: [
    'it is not one event',
    'It is JSON, but not an event. An event is one object with the texts status and detailedStatus, neither of them empty.',
  ],
  tracking_id: [
    'a tracking id is not 4 to 40 letters and digits',
    'Its trackingIds are missing, or one of them is not 4 to 40 letters and digits, so its parcel is unknown.',
  ],
  event_time: ['eventTime is not a UTC time', 'Its eventTime is not a time in UTC, such as 2026-03-01T10:00:00.250Z.'],
  parcel_full: ['its parcel holds 2,000 entries', 'Its parcel holds 2,000 entries already, which is the most a parcel may have.'],
  failed: ['recording it failed', 'It is an event, but recording it failed. The log says why.'],
}

const BY_REASON: ReadonlyMap<string, readonly [short: string, sentence: string]> = new Map(Object.entries(REASONS))

/** The reasons with their short descriptions, as filters offer them. */
export const REASON_CHOICES: readonly (readonly [reason: string, text: string])[] = [...BY_REASON].map(([reason, [short]]) => [
  reason,
  short,
])

/** Describes a reason in a few words, without a full stop. A reason that only another version knows is shown by its code. */
export function reasonText(reason: string): string {
  return BY_REASON.get(reason)?.[0] ?? reason.replaceAll('_', ' ')
}

export function reasonSentence(reason: string): string {
  return BY_REASON.get(reason)?.[1] ?? `The reason is ${reason}.`
}
