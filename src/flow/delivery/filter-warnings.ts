import type { EndpointFilters } from '../../domain/delivery/endpoint.ts'
import { DOCUMENTED_STATUSES } from '../../domain/history/status-entry.ts'
import { nearestName } from '../../domain/near-name.ts'
import type { ReadSide } from '../read-side.ts'

/** So many statuses are no vocabulary: the carrier makes them up, and any value may come. */
const STATUSES_MAX = 500

/**
 * Warns about each status of a filter that no parcel has had so far, with the nearest one. The carrier may use any status, so the filter is
 * accepted; but probably it is a typing error, by which an endpoint would get nothing.
 */
export function createFilterWarnings(
  reads: Pick<ReadSide, 'listStatuses'>,
): (filters: Pick<EndpointFilters, 'status'>) => Promise<readonly string[]> {
  return async ({ status }) => {
    if (status === null) return []
    const known = [...new Set([...DOCUMENTED_STATUSES, ...(await reads.listStatuses())])]
    if (known.length > STATUSES_MAX) return []
    return status.flatMap((value) => (known.includes(value) ? [] : [warningAbout(value, known)]))
  }
}

function warningAbout(value: string, known: readonly string[]): string {
  const near = nearestName(value, known)
  return `filters.status: no parcel has had the status "${value}" so far${near === null ? '' : `; did you mean ${near}?`}`
}
