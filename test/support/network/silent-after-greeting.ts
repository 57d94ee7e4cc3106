import { connect, createServer } from 'node:net'
import { onTestFinished, vi } from 'vitest'
import { listen } from './listen.ts'

/** The last message of a login, by which a PostgreSQL server says that it is ready for a query: its type, and its length in bytes. */
const READY = { type: 'Z'.charCodeAt(0), bytes: 6 }

/** Imitates a PostgreSQL server that lets clients log in and then never answers. `url`: the real server, which handles the logins. */
export async function startSilentAfterGreeting(url: string) {
  let asked = 0
  const server = createServer((client) => {
    const onward = connect({ port: Number(new URL(url).port), host: '127.0.0.1' })
    let isReady = false
    client.on('data', (chunk) => {
      if (isReady) asked += 1
      else onward.write(chunk)
    })
    onward.on('data', (chunk) => {
      client.write(chunk)
      isReady ||= chunk.at(-READY.bytes) === READY.type
    })
    for (const [one, other] of [
      [client, onward],
      [onward, client],
    ] as const) {
      one.on('error', () => other.destroy()).on('close', () => other.destroy())
    }
  })
  const port = await listen(server)
  onTestFinished(() => void server.close())
  const silent = new URL(url)
  silent.port = String(port)
  return {
    url: silent.href,
    /** Resolves when a client has sent a query. */
    untilAsked: () => vi.waitUntil(() => asked > 0, { timeout: 60_000, interval: 10 }),
  }
}
