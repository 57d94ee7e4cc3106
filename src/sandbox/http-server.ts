import { once } from 'node:events'
import { createServer } from 'node:http'
import { type Answer, type Call, callOf, errorAnswer, send } from './answer.ts'
import { carrierPathOf } from './carrier-api.ts'
import type { CallCounter } from './stats.ts'

export interface HttpServer {
  readonly url: string
  /** Closes every connection, including those in use. */
  stop(): Promise<void>
}

/** As in the relay. With Node's default of 5 s, a client on a busy machine may send on a connection that the server is closing. */
const KEEP_ALIVE_MS = 72_000

/** Serves `answer` and counts calls of the carrier's own paths. */
export async function startHttp(
  { host, port }: { readonly host: string; readonly port: number },
  calls: CallCounter,
  answer: (call: Call) => Promise<Answer | null>,
): Promise<HttpServer> {
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    const call = callOf(request)
    answer(call)
      .then((found) => found ?? errorAnswer(404, 'No such path'))
      .catch(() => errorAnswer(500, 'The sandbox itself failed'))
      .then((found) => {
        const path = carrierPathOf(call.path)
        if (path !== null) calls.count(path, found.status)
        send(response, found)
      })
      .catch(() => response.destroy())
  })
  server.listen(port, host)
  await once(server, 'listening')
  const address = server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    stop: async () => {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
