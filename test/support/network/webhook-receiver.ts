import { createHmac } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { startRequestServer } from './request-server.ts'

interface ReceivedPush {
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
}

export interface ReceiverAnswer {
  readonly status: number
  readonly body: string | Uint8Array
}

export interface WebhookReceiver extends AsyncDisposable {
  readonly url: string
  readonly pushes: readonly ReceivedPush[]
  /** Sets the answer from now on, by the number of the push (from 0). */
  answer(answerOf: (nth: number) => number | ReceiverAnswer): void
}

/** Starts the webhook endpoint of a customer on a free port. It records what it receives. */
export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const pushes: ReceivedPush[] = []
  let answerOf: (nth: number) => number | ReceiverAnswer = () => 200
  const { port, [Symbol.asyncDispose]: dispose } = await startRequestServer((request, body, response) => {
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    pushes.push({ body, headers })
    const answer = answerOf(pushes.length - 1)
    if (typeof answer === 'number') response.writeHead(answer).end()
    else response.writeHead(answer.status).end(answer.body)
  })
  return {
    url: `http://127.0.0.1:${port}/hooks/parcels`,
    pushes,
    answer: (next) => {
      answerOf = next
    },
    [Symbol.asyncDispose]: dispose,
  }
}

/** Starts a receiver that is closed after the test. */
export async function receiverOfTest(): Promise<WebhookReceiver> {
  const receiver = await startWebhookReceiver()
  onTestFinished(() => receiver[Symbol.asyncDispose]())
  return receiver
}

/** Returns the signature that the specification requires. */
export function expectedSignature(body: Buffer, key: string): string {
  return createHmac('sha256', Buffer.from(key, 'utf8')).update(body).digest('base64')
}
