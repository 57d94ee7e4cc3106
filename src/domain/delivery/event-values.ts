import type { FeedAddition } from './plan-events.ts'

/** The members of events, apart from the status, that filters compare with a list of values. */
export type FilteredMember = 'detailedStatus' | 'distributionType'

export interface EventValue {
  readonly member: FilteredMember
  readonly value: string
}

/** The greatest length of a value in a filter. Longer values are left out, because no filter can name them. */
const CHARS_MAX = 200

/** Returns the values of an event that filters can name. Returns none if endpoints are not sent the event. */
export function eventValuesOf({ entry, payload }: Pick<FeedAddition, 'entry' | 'payload'>): readonly EventValue[] {
  if (payload === null) return []
  const values: readonly EventValue[] = [
    { member: 'detailedStatus', value: entry.detailedStatus },
    { member: 'distributionType', value: payload.distributionType },
  ]
  return values.filter(({ value }) => value !== '' && value.length <= CHARS_MAX)
}
