import type { EndpointFilters } from '../../domain/delivery/endpoint.ts'
import { FILTERS, ofEach, type Setting } from '../../domain/delivery/endpoint-settings.ts'
import { nearestName } from '../../domain/near-name.ts'
import type { ReadSide } from '../../store/read-store.ts'

/** If events have had more different values than this, the carrier seems to invent values all the time. Then an unknown value is no mistake. */
const VALUES_MAX = 500

/** A setting that is valid but probably a mistake. */
export interface FilterWarning {
  readonly filter: string
  /** A clause without a full stop. */
  readonly message: string
}

/**
 * Warns about each value of a filter that no event has had so far, and names the most similar known value. Such a filter is accepted,
 * because the carrier may use any value. But an unknown value is probably a typing error, and the endpoint would then get nothing.
 */
export function createFilterWarnings(
  reads: Pick<ReadSide, 'listStatuses' | 'listEventValues'>,
): (filters: EndpointFilters) => Promise<readonly FilterWarning[]> {
  return async (filters) => {
    const wanted = new Map<string, unknown>(Object.entries(filters).filter(([, values]) => Array.isArray(values)))
    if (wanted.size === 0) return []
    const statuses = (await reads.listStatuses()).map((value) => ({ member: 'status', value }))
    const seen = Map.groupBy([...statuses, ...(await reads.listEventValues())], ({ member }) => member)
    const warnings = ofEach(FILTERS, (row, name) => warningsAbout(row, name, wanted.get(name), seen.get(name)))
    return Object.values(warnings).flat()
  }
}

export function describeWarning({ filter, message }: FilterWarning): string {
  return `filters.${filter}: ${message}`
}

function warningsAbout(
  row: Setting,
  filter: string,
  wanted: unknown,
  seen: readonly { readonly value: string }[] = [],
): readonly FilterWarning[] {
  if (row.kind !== 'values' || !Array.isArray(wanted)) return []
  const known = [...new Set([...row.known, ...seen.map(({ value }) => value)])]
  if (known.length === 0 || known.length > VALUES_MAX) return []
  return wanted.map(String).flatMap((value) => {
    if (known.includes(value)) return []
    const near = nearestName(value, known)
    const unseen = `no ${filter === 'status' ? 'parcel' : 'event'} has had the ${row.label.toLowerCase()}`
    return [{ filter, message: `${unseen} "${value}" so far${near === null ? '' : `; did you mean ${near}?`}` }]
  })
}
