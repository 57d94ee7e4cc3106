import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { Happening } from './picture.ts'

/** An app to which the relay pushes events. It relies only on its shared key and the documented headers. */
export interface Subscriber {
  readonly url: string
  /** Returns the new events since the last call. */
  takeNews(): readonly Happening[]
  /** Returns the number of distinct events with a valid signature, and the number of pushes with a wrong one. */
  counts(): { readonly events: number; readonly wrong: number }
  stop(): Promise<void>
}

const BODY_BYTES_MAX = 1024 * 1024
/** At most this many event ids are remembered, to bound the memory. */
const REMEMBERED_MAX = 100_000

export async function startSubscriber(host: string, port: number, sharedKey: string): Promise<Subscriber> {
  const seen = new Set<string>()
  let news: Happening[] = []
  let wrong = 0

  /** Takes a push, and returns the status to answer. The relay may send an event twice, so the id decides whether an event is new. */
  function take(body: Buffer, headers: IncomingMessage['headers']): number {
    const expected = createHmac('sha256', sharedKey).update(body).digest()
    const given = Buffer.from(String(headers['x-service-hmac-sha256']), 'base64')
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      wrong += 1
      return 401
    }
    const id = String(headers['webhook-id'])
    if (seen.has(id)) return 200
    if (seen.size < REMEMBERED_MAX) seen.add(id)
    news.push({ kind: 'relayed', ...presentEvent(body.toString()) })
    return 200
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= BODY_BYTES_MAX) chunks.push(chunk)
      else request.destroy()
    })
    request.on('end', () => void response.writeHead(take(Buffer.concat(chunks), request.headers)).end())
  }).listen(port, host)
  await once(server, 'listening')

  return {
    url: `http://${host}:${port}/events`,
    takeNews() {
      const taken = news
      news = []
      return taken
    },
    counts: () => ({ events: seen.size, wrong }),
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

function presentEvent(body: string): Pick<Happening, 'trackingNumber' | 'about'> {
  const event: unknown = JSON.parse(body)
  const say = (name: string): unknown => (typeof event === 'object' && event !== null ? Reflect.get(event, name) : undefined)
  const ids = say('trackingIds')
  const place = say('location')
  return {
    trackingNumber: Array.isArray(ids) ? String(ids[0]) : '',
    about: `${String(say('detailedStatus'))}${typeof place === 'string' ? ` in ${place}` : ''}, signature valid`,
  }
}
