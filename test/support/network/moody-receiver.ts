import type { IncomingMessage } from 'node:http'
import { startRequestServer } from './request-server.ts'
import { expectedSignature } from './webhook-receiver.ts'

/** How an endpoint reacts to an event: with an answer after a delay, or with a reset. `closes`: the answer also closes the connection. */
export type Mood = { readonly status: number; readonly afterMs: number; readonly closes?: boolean } | 'reset'

export interface Arrival {
  readonly webhookId: string
  readonly sequence: number
  readonly previous: number
  readonly body: string
  readonly isSigned: boolean
  /** Whether it was answered with a 2xx. */
  accepted: boolean
}

export interface MoodyReceiver extends AsyncDisposable {
  readonly url: string
  readonly arrivals: readonly Arrival[]
  /** While down, it resets every connection, open ones included. */
  setDown(down: boolean): void
}

/** Starts an endpoint that records every attempt. `moodOf` returns how it reacts to an event with this body. */
export async function startMoodyReceiver(key: string, moodOf: (body: string) => Mood): Promise<MoodyReceiver> {
  const arrivals: Arrival[] = []
  let isDown = false
  const {
    server,
    port,
    [Symbol.asyncDispose]: dispose,
  } = await startRequestServer((request, body, response) => {
    const arrival = arrivalOf(request, body, key)
    arrivals.push(arrival)
    const mood = moodOf(arrival.body)
    if (mood === 'reset') return void request.socket.destroy()
    const answer = (): void => {
      if (response.destroyed) return
      arrival.accepted = mood.status < 300
      response.writeHead(mood.status, mood.closes === true ? { connection: 'close' } : {}).end()
    }
    if (mood.afterMs === 0) answer()
    else setTimeout(answer, mood.afterMs)
  })
  server.on('connection', (socket) => {
    if (isDown) socket.destroy()
  })
  return {
    url: `http://127.0.0.1:${port}/events`,
    arrivals,
    setDown(down) {
      isDown = down
      if (down) server.closeAllConnections()
    },
    [Symbol.asyncDispose]: dispose,
  }
}

function arrivalOf({ headers }: IncomingMessage, body: Buffer, key: string): Arrival {
  return {
    webhookId: String(headers['webhook-id']),
    sequence: Number(headers['relay-sequence']),
    previous: Number(headers['relay-previous-sequence']),
    body: body.toString(),
    isSigned: headers['x-service-hmac-sha256'] === expectedSignature(body, key),
    accepted: false,
  }
}
