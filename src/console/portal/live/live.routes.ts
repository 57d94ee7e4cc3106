import type Router from '@koa/router'
import type { Context } from 'koa'
import { proveConnection } from '../../../core/http/server/connection-slots.ts'
import type { Shown } from '../../overview/live-look.ts'
import type { Person, Sessions } from '../session.ts'
import type { LiveStreams } from './live-streams.ts'

export interface LiveOptions {
  readonly live: LiveStreams
  readonly sessions: Pick<Sessions, 'personOf' | 'hold'>
  readonly settings: () => { readonly enabled: boolean }
}

/** Adds the route of the stream that tells a page in a browser when its data has changed. */
export function addLive(router: Router, { live, sessions, settings }: LiveOptions): void {
  router.get('/live', async (ctx: Context) => {
    const person = await sessions.personOf(ctx, false)
    const held = person === null ? null : await sessions.hold(ctx, person)
    ctx.set('Cache-Control', 'no-store')
    const reader = [person?.name ?? '', held?.session ?? ''] as const
    if (person === null || held === null || !live.hasRoom(reader)) {
      // After an error status the browser does not reconnect.
      ctx.status = person === null ? 401 : 503
      held?.release()
      return
    }
    proveConnection(ctx.req)
    if (ctx.method === 'HEAD') {
      held.release()
      ctx.status = 200
      return
    }
    const page = new URLSearchParams(ctx.querystring).get('page') ?? ''
    await live.stream(ctx.res, { reader, shown: shownOn(page, person), isAllowed: () => settings().enabled && held.isAllowed() })
    held.release()
    // The stream has written the answer itself.
    ctx.respond = false
  })
}

/** Returns which data the page at `path` keeps up to date. `other`: only the side bar. */
function shownOn(path: string, { scope }: Pick<Person, 'scope'>): Shown {
  if (path === '/') return { kind: 'overview' }
  if (path === '/jobs' && scope === 'admin') return { kind: 'jobs' }
  const [, section, id = ''] = /^\/(parcels|webhooks)\/([a-z0-9]{1,40})$/i.exec(path) ?? []
  if (section === 'parcels') return { kind: 'parcel', identifier: id.toUpperCase() }
  if (section === 'webhooks' && scope === 'admin') return { kind: 'endpoint', id }
  return { kind: 'other' }
}
