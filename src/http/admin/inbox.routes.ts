import { isUtf8 } from 'node:buffer'
import type Router from '@koa/router'
import type { InboxPush, InspectedPush } from '../../domain/ingest/inbox.ts'
import { INBOX_STATES, type ManageInbox } from '../../flow/admin/manage-inbox.ts'
import { createApiRoutes } from '../server/api-routes.ts'
import type { Authorize } from '../server/authorize.ts'
import { presentInstant, presentJson } from '../server/present.ts'
import { count, NO_QUERY, oneOf, page, query } from '../server/query.ts'

export interface InboxRouteOptions {
  readonly manageInbox: ManageInbox
  readonly authorize: Authorize
}

/** Received pushes, byte for byte, under /relay (scope `admin`). */
export function inboxRoutes({ manageInbox, authorize }: InboxRouteOptions): Router {
  const routes = createApiRoutes(authorize)
  const admin = { scope: 'admin', query: NO_QUERY } as const
  routes.add('get', '/relay/inbox', {
    scope: 'admin',
    query: query({ ...page, cursor: count.nullable().default(null), state: oneOf(INBOX_STATES) }),
    answer: async (ctx, call) => {
      const { pushes, next } = await manageInbox.list(call.query)
      presentJson(ctx, 200, { pushes: pushes.map(presentPush), next })
    },
  })
  routes.add('get', '/relay/inbox/:id', {
    ...admin,
    answer: async (ctx, { param }) => presentJson(ctx, 200, presentInspected(await manageInbox.find(param('id')))),
  })
  routes.add('post', '/relay/inbox/:id/reprocess', {
    ...admin,
    answer: async (ctx, { param }) => {
      const outcome = await manageInbox.reprocess(param('id'))
      presentJson(ctx, 200, { outcome: outcome.kind, reason: outcome.kind === 'quarantined' ? outcome.reason : null })
    },
  })
  return routes.router
}

function presentPush({ inboxId, state, reason, receivedAtMs, keyIndex, contentEncoding, duplicates, bodyBytes }: InboxPush): object {
  return {
    id: String(inboxId),
    state,
    reason,
    receivedAt: presentInstant(receivedAtMs),
    /** The index in webhook.sharedKeys of the key that matched. */
    keyIndex,
    contentEncoding,
    duplicates,
    bodyBytes,
  }
}

/** A push with its exact bytes in Base64, and as text if they are UTF-8. */
function presentInspected({ body, ...push }: InspectedPush): object {
  const bytes = body === null ? null : Buffer.from(body)
  const text = bytes !== null && isUtf8(bytes) ? bytes.toString() : null
  return { ...presentPush(push), body: bytes?.toString('base64') ?? null, text }
}
