import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen } from './listen.ts'

export type OnRequest = (request: IncomingMessage, body: Buffer, response: ServerResponse) => void

/** Returns a listener that calls `onRequest` once the whole body of a request has arrived. */
export const withBody = (onRequest: OnRequest) => (request: IncomingMessage, response: ServerResponse) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => onRequest(request, Buffer.concat(chunks), response))
}

/** Starts an HTTP server on a free port that calls `onRequest` with whole requests. Disposing of it closes its connections too. */
export async function startRequestServer(onRequest: OnRequest) {
  const server = createServer(withBody(onRequest))
  const port = await listen(server)
  return {
    server,
    port,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
