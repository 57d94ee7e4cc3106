import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { createSeries } from '../load/percentiles.ts'
import { ageOf } from '../load/stamps.ts'

/**
 * The endpoints, each on its own port. The first argument is the number that answer; the second, the number of silent ones, which take
 * everything and never answer. With a third argument the first endpoint also records the age of its events. GET on the first port returns the
 * counts since the start and the ages since the last query.
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
      // Answers once the body is complete; an earlier response would end the exchange early.
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
