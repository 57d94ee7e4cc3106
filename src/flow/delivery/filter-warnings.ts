import type { EndpointFilters } from '../../domain/delivery/endpoint.ts'
import { DOCUMENTED_DETAILED_STATUSES, DOCUMENTED_STATUSES } from '../../domain/history/status-entry.ts'
import { nearestName } from '../../domain/near-name.ts'
import type { ReadSide } from '../../store/read-side.ts'

/** If events have had more different values than this, the carrier seems to invent values all the time. Then an unknown value is no mistake. */
const VALUES_MAX = 500

/** The filters on values that the carrier chooses freely. */
type ValueFilters = Pick<EndpointFilters, 'status' | 'detailedStatus' | 'distributionType'>

/** A setting that is valid but probably a mistake. */
export interface FilterWarning {
  readonly filter: keyof ValueFilters
  /** A clause without a full stop. */
  readonly message: string
}

const UNSEEN: Readonly<Record<keyof ValueFilters, string>> = {
  status: 'no parcel has had the status',
  detailedStatus: 'no event has had the detailed status',
  distributionType: 'no event has had the kind of delivery',
}

/**
 * Warns about each value of a filter that no event has had so far, and names the most similar known value. Such a filter is accepted,
 * because the carrier may use any value. But an unknown value is probably a typing error, and the endpoint would then get nothing.
 */
export function createFilterWarnings(
  reads: Pick<ReadSide, 'listStatuses' | 'listEventValues'>,
): (filters: ValueFilters) => Promise<readonly FilterWarning[]> {
  return async ({ status, detailedStatus, distributionType }) => {
    if (status === null && detailedStatus === null && distributionType === null) return []
    const values = await reads.listEventValues()
    const seen = (name: string) => values.flatMap(({ member, value }) => (member === name ? [value] : []))
    return [
      ...warningsAbout('status', status, [...DOCUMENTED_STATUSES, ...(await reads.listStatuses())]),
      ...warningsAbout('detailedStatus', detailedStatus, [...DOCUMENTED_DETAILED_STATUSES, ...seen('detailedStatus')]),
      ...warningsAbout('distributionType', distributionType, seen('distributionType')),
    ]
  }
}

export function describeWarning({ filter, message }: FilterWarning): string {
  return `filters.${filter}: ${message}`
}

function warningsAbout(filter: keyof ValueFilters, wanted: readonly string[] | null, seen: readonly string[]): readonly FilterWarning[] {
  const known = [...new Set(seen)]
  if (wanted === null || known.length === 0 || known.length > VALUES_MAX) return []
  return wanted.flatMap((value) => {
    if (known.includes(value)) return []
    const near = nearestName(value, known)
    return [{ filter, message: `${UNSEEN[filter]} "${value}" so far${near === null ? '' : `; did you mean ${near}?`}` }]
  })
}
