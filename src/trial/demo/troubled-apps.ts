import { once } from 'node:events'
import { createServer } from 'node:http'

/** Apps whose webhooks are in trouble, and an app that pages the operator on call. They share a listener, and each has its own path. */
export interface TroubledApps {
  readonly onCallUrl: string
  /** The webhooks of the apps in trouble, for an operator to add. */
  readonly webhooks: readonly { readonly name: string; readonly url: string }[]
  stop(): Promise<void>
}

interface Answer {
  readonly status: number
  readonly body?: string
}

/** The busy app refuses every fourth event, but only at its first attempt. */
const REFUSED_ONCE_EVERY = 4

export async function startTroubledApps(host: string, port: number): Promise<TroubledApps> {
  const apps: Readonly<Record<string, (eventId: string) => Answer>> = {
    '/billing': () => ({ status: 503, body: 'billing-db-2: no space left on device' }),
    '/warehouse': busyApp(),
    '/old-shop': () => ({ status: 410, body: 'The old shop has closed. The new one asks the relay itself.' }),
    '/on-call': () => ({ status: 204 }),
  }
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      const { status, body } = apps[request.url ?? '']?.(String(request.headers['webhook-id'])) ?? { status: 404 }
      response.writeHead(status, { 'content-type': 'text/plain' }).end(body)
    })
  }).listen(port, host)
  await once(server, 'listening')
  const url = `http://${host}:${port}`
  return {
    onCallUrl: `${url}/on-call`,
    webhooks: ['billing', 'warehouse', 'old-shop'].map((name) => ({ name, url: `${url}/${name}` })),
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

function busyApp(): (eventId: string) => Answer {
  const refused = new Set<string>()
  let events = 0
  return (eventId) => {
    if (refused.delete(eventId)) return { status: 200 }
    events += 1
    if (events % REFUSED_ONCE_EVERY > 0) return { status: 200 }
    refused.add(eventId)
    return { status: 500, body: 'lock wait timeout exceeded; try restarting the transaction' }
  }
}
