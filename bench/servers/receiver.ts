import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { createSeries } from '../load/percentiles.ts'
import { ageOf } from '../load/stamps.ts'

/**
 * Where the relay delivers to: as many endpoints as the first argument says, a port each, and after them as many as the second says that
 * take everything and never answer. With a third argument the first endpoint looks how old its events are; else counting is all it does.
 * GET on the first port tells: the counts since the start, and the ages since it was last asked.
 */
const [, , endpoints = '1', silent = '0', isStamped = ''] = process.argv

const counts = Array.from({ length: Number(endpoints) }, () => 0)
let ages = createSeries()

function tell(): string {
  const { p50, p90, p99, max } = ages.percentiles()
  ages = createSeries()
  return JSON.stringify({ counts, ports, atMs: performance.now(), ageMs: [p50, p90, p99, max] })
}

function take(at: number, req: IncomingMessage): void {
  counts[at] = (counts[at] ?? 0) + 1
  if (isStamped === '') {
    req.resume()
    return
  }
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk))
  req.on('end', () => {
    const ageMs = ageOf(Buffer.concat(chunks))
    if (at === 0 && ageMs !== null) ages.add(ageMs)
  })
}

const answering = counts.map((_, at) =>
  createServer((req, res) => {
    if (req.method === 'GET') res.end(tell())
    else {
      take(at, req)
      // Once all of it is there: an answer that comes before would end the exchange early.
      req.on('end', () => res.end())
    }
  }),
)
const silence = Array.from({ length: Number(silent) }, () => createServer((req) => req.resume()))
const servers = [...answering, ...silence]
for (const server of servers) {
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
}
const ports = servers.map((server) => {
  const address = server.address()
  return address !== null && typeof address === 'object' ? address.port : 0
})
process.stdout.write(`${JSON.stringify({ port: ports[0] })}\n`)
