import { createHmac } from 'node:crypto'
import { startRequestServer } from '../../support/network/request-server.ts'

/** Stands between the sandbox and the relay. It signs with the carrier's current key, and writes events in the carrier's current format. */
export interface Gateway extends AsyncDisposable {
  readonly url: string
  /** Null: the relay is down, so pushes are answered with 503. */
  relayUrl: string | null
  key: string
  /** Whether the carrier has renamed a mandatory member of its events. */
  isRenamed: boolean
  /** The number of pushes that the relay has answered, by status. */
  readonly answers: ReadonlyMap<number, number>
  /** The number of pushes with the renamed member that the relay has accepted. */
  renamed(): number
}

export async function startGateway(key: string): Promise<Gateway> {
  const answers = new Map<number, number>()
  let renamed = 0
  const forward = async (given: Buffer): Promise<number> => {
    if (gateway.relayUrl === null) return 503
    const body = gateway.isRenamed ? Buffer.from(given.toString().replace('"eventTime"', '"occurredAt"')) : given
    const signature = createHmac('sha256', gateway.key).update(body).digest('base64')
    const headers = { 'content-type': 'application/json', 'x-service-hmac-sha256': signature }
    const { status } = await fetch(`${gateway.relayUrl}/webhooks/status`, { method: 'POST', body, headers }).catch(() => ({ status: 503 }))
    answers.set(status, (answers.get(status) ?? 0) + 1)
    if (gateway.isRenamed && status === 200) renamed += 1
    return status
  }
  const { port, [Symbol.asyncDispose]: dispose } = await startRequestServer((_request, body, response) => {
    void forward(body).then((status) => response.writeHead(status).end())
  })
  const gateway: Gateway = {
    url: `http://127.0.0.1:${port}/`,
    relayUrl: null,
    key,
    isRenamed: false,
    answers,
    renamed: () => renamed,
    [Symbol.asyncDispose]: dispose,
  }
  return gateway
}
