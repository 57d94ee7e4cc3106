import { AppError } from '../../../domain/errors.ts'
import type { ParcelCommands } from '../../../flow/admin/parcel-commands.ts'
import { type ParcelQueries, readCursor, readPrefix, STOPPED_REASONS } from '../../../flow/admin/parcel-queries.ts'
import type { PageRoute, Visit } from '../page-route.ts'
import { parcelPage } from './parcel.page.ts'
import { parcelListPage } from './parcel-list.page.ts'

export interface ParcelPagesOptions {
  readonly lookAtParcels: ParcelQueries
  readonly manageParcels: ParcelCommands
}

const LIST_MAX = 100

/** The pages about parcels: their list, and one with its history. */
export function parcelPages({ lookAtParcels, manageParcels }: ParcelPagesOptions): readonly PageRoute[] {
  return [
    { method: 'get', path: '/parcels', scope: 'status', answer: list },
    {
      method: 'get',
      path: '/parcels/:identifier',
      scope: 'status',
      answer: async (visit) => ({ page: parcelPage(visit, await lookAtParcels.inspect(visit.param('identifier'))) }),
    },
    ...(['watch', 'unwatch', 'refresh'] as const).map(
      (verb): PageRoute => ({
        method: 'post',
        path: `/parcels/:identifier/${verb}`,
        scope: 'admin',
        answer: async (visit) => {
          const { identifier } = await manageParcels[verb](visit.param('identifier'), visit.by)
          return { goTo: visit.to`/parcels/${identifier}` }
        },
      }),
    ),
  ]

  async function list(visit: Visit) {
    const text = visit.query('query').trim()
    const stopped = STOPPED_REASONS.find((reason) => reason === visit.query('stopped')) ?? null
    const filters = { text, status: visit.query('status').trim(), stopped }
    const prefix = text === '' ? null : readPrefix(text)
    if (text !== '' && prefix === null) return { page: parcelListPage(visit, { filters, found: null }) }
    const cursor = visit.query('cursor') === '' ? null : readCursor(visit.query('cursor'))
    if (cursor === null && visit.query('cursor') !== '') throw new AppError('not_found', 'The list has no such page.')
    const status = filters.status === '' ? null : filters.status
    const found = await lookAtParcels.list({ query: prefix, status, stopped, cursor, limit: LIST_MAX })
    const [only, ...more] = found.parcels
    const isTheOne = prefix !== null && more.length === 0 && only?.identifiers.some(({ value }) => value === prefix) === true
    return isTheOne ? { goTo: visit.to`/parcels/${prefix}` } : { page: parcelListPage(visit, { filters, found }) }
  }
}
