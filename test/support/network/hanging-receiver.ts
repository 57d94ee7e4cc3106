import { createServer, type ServerResponse } from 'node:http'
import { listenInTest } from './listen.ts'

/** Starts a receiver that answers only when the test says so. It is closed after the test. */
export async function startHangingReceiver() {
  const waiting: ServerResponse[] = []
  const server = createServer((request, response) => void request.resume().on('end', () => waiting.push(response)))
  const port = await listenInTest(server)
  return {
    url: `http://127.0.0.1:${port}/`,
    underWay: () => waiting.length,
    /** Answers the request that has waited longest. */
    answer: (status: number) => void waiting.shift()?.writeHead(status).end(),
  }
}
