import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { ownGroup, tieToTest } from '../runner/tied-process.ts'

/** Requests that many clients send at once, without waiting for answers. */
export interface Flood {
  readonly port: number
  readonly connections: number
  /** A request, or the start of one. Each `{number}` in it becomes a number of eight digits, different for each connection. */
  readonly request: string
  /** How often each connection sends the request. */
  readonly times: number
  readonly reads: boolean
  /** Whether a closed connection is reopened, and then sends its requests again. */
  readonly comesAgain: boolean
}

export interface FloodCount {
  /** Includes reconnections. */
  readonly connected: number
  /** Connections that the relay closed. */
  readonly closed: number
  readonly sentBytes: number
  /** Answers by status, as far as they were read. */
  readonly statuses: Readonly<Record<string, number>>
}

export interface RunningFlood extends AsyncDisposable {
  count(): Promise<FloodCount>
}

const STATUS = /HTTP\/1\.1 (\d{3}) /g
const AGAIN_MS = 100
/** With this argument, this file runs the clients. */
const FLOOD = 'flood'

/** Starts the clients in a separate process, so that sending costs the relay nothing. Resolves once all are connected and sending. */
export async function startFlood(flood: Flood): Promise<RunningFlood> {
  const child = tieToTest(fork(fileURLToPath(import.meta.url), [FLOOD], { ...ownGroup, execArgv: [] }))
  child.send(flood)
  await once(child, 'message')
  return {
    async count() {
      const answer = once(child, 'message')
      child.send('count')
      const [count] = await answer
      return count
    },
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

function run({ port, connections, request, times, reads, comesAgain }: Flood): void {
  let numbers = 10_000_000
  const bytesOf = () => Buffer.from(request.replaceAll('{number}', String(numbers++)).repeat(times), 'latin1')
  const always = request.includes('{number}') ? null : bytesOf()
  const count = { connected: 0, closed: 0, sentBytes: 0, statuses: {} as Record<string, number> }
  const open = (): Socket => {
    const socket = connect(port, '127.0.0.1', () => {
      count.connected++
      socket.write(always ?? bytesOf())
      if (count.connected === connections) process.send?.('begun')
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      count.closed++
      count.sentBytes += socket.bytesWritten
      if (comesAgain) setTimeout(open, AGAIN_MS)
    })
    if (reads) socket.on('data', (chunk) => readStatuses(chunk))
    else socket.pause()
    return socket
  }
  const readStatuses = (chunk: Buffer): void => {
    for (const [, status = ''] of chunk.toString('latin1').matchAll(STATUS)) count.statuses[status] = (count.statuses[status] ?? 0) + 1
  }
  const sockets = Array.from({ length: connections }, open)
  process.on('message', () => {
    const sentBytes = sockets.reduce((sum, { destroyed, bytesWritten }) => sum + (destroyed ? 0 : bytesWritten), count.sentBytes)
    process.send?.({ ...count, sentBytes })
  })
}

if (process.argv[2] === FLOOD) process.once('message', (flood: Flood) => run(flood))
