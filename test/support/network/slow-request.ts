import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { signBody } from '../../../src/core/domain/ingest/signature.ts'
import { SHARED_KEY } from '../relay/relay.ts'

export interface SlowRequest {
  /** Sends the rest of the body. Resolves with everything received until the connection closed. */
  finish(): Promise<string>
  readonly socket: Socket
}

/** Sends a push except for its last byte, and waits until the relay has begun to read. The push is in flight until `finish`. */
export async function startSlowPush(publicUrl: string, body: string): Promise<SlowRequest> {
  const { hostname, port } = new URL(publicUrl)
  const bytes = Buffer.from(body)
  const socket = connect(Number(port), hostname)
  // A relay that stops abruptly breaks the connection. The test checks how the process ended instead.
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
  // "100 Continue" shows that the relay has received the request.
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
