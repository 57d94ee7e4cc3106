import { connect, type Socket } from 'node:net'
import { createAnswerReader } from './answer-reader.ts'

/** One connection, kept alive, with at most one request in flight. */
export interface Connection {
  send(request: Buffer): void
  close(): void
}

export interface ConnectionEvents {
  readonly onAnswer: (status: number, bodyBytes: number) => void
  /** It ended, though nobody here closed it. */
  readonly onBroken: () => void
}

const READ_BYTES = 64 * 1024

/** Bare sockets: a client library would cost as much as the server that is measured, on the same two cores. */
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
