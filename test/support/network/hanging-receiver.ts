import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { onTestFinished } from 'vitest'

/** A receiver that answers only when the test says so. It ends with the test. */
export async function startHangingReceiver() {
  const waiting: ServerResponse[] = []
  const server = createServer((request, response) => void request.resume().on('end', () => waiting.push(response))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`,
    underWay: () => waiting.length,
    /** Answers the request that has waited longest. */
    answer: (status: number) => void waiting.shift()?.writeHead(status).end(),
  }
}
