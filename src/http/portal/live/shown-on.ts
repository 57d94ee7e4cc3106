import type { Shown } from '../../../flow/admin/overview/live-look.ts'
import type { Person } from '../session.ts'

/** Returns which data the page at `path` keeps up to date. `other`: only the side bar. */
export function shownOn(path: string, { scope }: Pick<Person, 'scope'>): Shown {
  if (path === '/') return { kind: 'overview' }
  if (path === '/jobs' && scope === 'admin') return { kind: 'jobs' }
  const [, section, id = ''] = /^\/(parcels|webhooks)\/([a-z0-9]{1,40})$/i.exec(path) ?? []
  if (section === 'parcels') return { kind: 'parcel', identifier: id.toUpperCase() }
  if (section === 'webhooks' && scope === 'admin') return { kind: 'endpoint', id }
  return { kind: 'other' }
}
