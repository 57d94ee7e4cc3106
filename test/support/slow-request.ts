import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { signBody } from '../../src/domain/ingest/signature.ts'
import { SHARED_KEY } from './relay.ts'

export interface SlowRequest {
  /** Sends what is left of the body; resolves with all that came back before the connection was closed. */
  finish(): Promise<string>
  readonly socket: Socket
}

/** A push of which everything but the last byte has been sent, and that a relay has begun to read: until it is finished, it is in flight. */
export async function startSlowPush(publicUrl: string, body: string): Promise<SlowRequest> {
  const { hostname, port } = new URL(publicUrl)
  const bytes = Buffer.from(body)
  const socket = connect(Number(port), hostname)
  // A relay that ends at once breaks the connection: that is for the test to notice, by how the process ended.
  socket.on('error', () => {})
  await once(socket, 'connect')
  const answer = new Promise<string>((resolve) => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('close', () => resolve(Buffer.concat(chunks).toString()))
  })
  const head = [
    'POST /webhooks/status HTTP/1.1',
    `Host: ${hostname}`,
    `Content-Length: ${bytes.length}`,
    `x-service-hmac-sha256: ${signBody(bytes, SHARED_KEY)}`,
    'Expect: 100-continue',
  ]
  // That it says "continue" shows that the request is with the relay, and not still on its way.
  const continued = once(socket, 'data')
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  await continued
  socket.write(bytes.subarray(0, -1))
  return {
    socket,
    finish: () => {
      socket.write(bytes.subarray(-1))
      return answer
    },
  }
}
