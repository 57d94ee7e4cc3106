import { connect, type Socket } from 'node:net'
import { createAnswerReader } from './answer-reader.ts'

/** A keep-alive connection with at most one request in flight. */
export interface Connection {
  send(request: Buffer): void
  close(): void
}

export interface ConnectionEvents {
  readonly onAnswer: (status: number, bodyBytes: number) => void
  /** Called when the connection ends without `close`. */
  readonly onBroken: () => void
}

const READ_BYTES = 64 * 1024

/** Uses bare sockets: a client library would use as much processor time as the measured server, on the same two cores. */
export function openConnection(port: number, { onAnswer, onBroken }: ConnectionEvents): Promise<Connection> {
  const read = createAnswerReader(onAnswer)
  let closed = false
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafe(READ_BYTES),
        callback(bytes, buffer) {
          read(Buffer.from(buffer.buffer, buffer.byteOffset, bytes))
          return true
        },
      },
    })
    socket.on('error', reject)
    socket.on('close', () => {
      if (!closed) onBroken()
    })
    socket.once('connect', () =>
      resolve({
        send: (request) => void socket.write(request),
        close() {
          closed = true
          socket.destroy()
        },
      }),
    )
  })
}
