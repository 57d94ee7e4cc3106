import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen } from './listen.ts'

export type OnRequest = (request: IncomingMessage, body: Buffer, response: ServerResponse) => void

/** Calls back with a request whose body has come to its end. */
export const withBody = (onRequest: OnRequest) => (request: IncomingMessage, response: ServerResponse) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => onRequest(request, Buffer.concat(chunks), response))
}

/** An HTTP server on a free port that takes whole requests. Disposing of it closes its connections too. */
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
