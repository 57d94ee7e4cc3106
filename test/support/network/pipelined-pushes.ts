import { connect } from 'node:net'
import { signBody } from '../../../src/core/domain/ingest/signature.ts'
import { pushBody } from '../history/builders.ts'
import { SHARED_KEY } from '../relay/relay.ts'

/** Each body contains a text of its own, by which a test finds it in files on disk. */
export function distinctPushes(count: number, name: string): readonly Buffer[] {
  return Array.from({ length: count }, (_, at) => pushBody({ location: `${name}-${at}-`, trackingIds: [String(5000 + (at % 20))] }))
}

/**
 * Pushes over one connection with HTTP pipelining, `atOnce` at a time. Resolves with the statuses in the order of the pushes. There are fewer
 * statuses than pushes if the connection ends early.
 */
export async function pushPipelined(publicUrl: string, bodies: readonly Buffer[], atOnce: number): Promise<readonly number[]> {
  const { hostname, port } = new URL(publicUrl)
  const socket = connect(Number(port), hostname)
  const statuses: number[] = []
  let sent = 0
  let text = ''
  const sendMore = () => {
    for (; sent < bodies.length && sent < statuses.length + atOnce; sent++) {
      const body = bodies[sent] ?? Buffer.alloc(0)
      const head = ['POST /webhooks/status HTTP/1.1', 'Host: relay', `Content-Length: ${body.length}`]
      socket.write(`${[...head, `x-service-hmac-sha256: ${signBody(body, SHARED_KEY)}`].join('\r\n')}\r\n\r\n`)
      socket.write(body)
    }
  }
  return await new Promise((resolve) => {
    socket.on('error', () => resolve(statuses))
    socket.on('close', () => resolve(statuses))
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) statuses.push(Number(status))
      // A status line may be split between two chunks.
      text = text.slice(Math.max(text.lastIndexOf('\r\n'), text.lastIndexOf('HTTP/1.1 ') + 12))
      if (statuses.length >= bodies.length) socket.end()
      else if (statuses.length === sent) sendMore()
    })
    sendMore()
  })
}
