import type { FeedAddition } from './plan-events.ts'

/** The members of events, beside the status, that filters compare with a list of values. */
export type FilteredMember = 'detailedStatus' | 'distributionType'

/** A value of such a member. */
export interface EventValue {
  readonly member: FilteredMember
  readonly value: string
}

/** The greatest length of a value in a filter. A longer value of an event need not be known. */
const CHARS_MAX = 200

/** The values that an event offers to filters; none if endpoints are sent nothing for it. */
export function eventValuesOf({ entry, payload }: Pick<FeedAddition, 'entry' | 'payload'>): readonly EventValue[] {
  if (payload === null) return []
  const values: readonly EventValue[] = [
    { member: 'detailedStatus', value: entry.detailedStatus },
    { member: 'distributionType', value: payload.distributionType },
  ]
  return values.filter(({ value }) => value !== '' && value.length <= CHARS_MAX)
}
