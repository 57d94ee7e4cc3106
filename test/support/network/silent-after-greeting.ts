import { connect, createServer } from 'node:net'
import { onTestFinished, vi } from 'vitest'
import { listen } from './listen.ts'

/** The type of the message with which a PostgreSQL server takes the first question, and how many bytes it ends before the end of the message. */
const READY = { type: 'Z'.charCodeAt(0), bytes: 6 }

/** A PostgreSQL server that lets clients in and then says nothing more, whatever they ask. `url` is that of one that does. */
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
    /** Resolves when something was asked. */
    untilAsked: () => vi.waitUntil(() => asked > 0, { timeout: 60_000, interval: 10 }),
  }
}
