import { randomUUID } from 'node:crypto'
import { request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { checkPushBody } from '../../core/domain/ingest/parse-push.ts'
import { signBody } from '../../core/domain/ingest/signature.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import { failed, ok, type Verdict } from './check.rules.ts'
import type { Probe } from './manage-check.ts'

export interface PushProbeOptions {
  /** The address of the public listener, with the port that it really has. */
  readonly publicUrl: string
  readonly path: string
  /** The first of `webhook.sharedKeys`. */
  readonly key: string
}

const TIMEOUT_MS = 10_000

/** Makes the probe that sends a signed push to the relay itself. The body says that it is only a check, so the push is counted but not stored. */
export function pushProbe(options: () => PushProbeOptions): Probe {
  return { name: 'push', subject: null, look: async () => await push(options()) }
}

async function push({ publicUrl, path, key }: PushProbeOptions): Promise<Verdict> {
  const body = checkPushBody(randomUUID())
  const url = new URL(path, publicUrl)
  // These addresses stand for all addresses of the machine. Connect to the local one.
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.hostname === '[::]') url.hostname = '[::1]'
  const status = await post(url, body, signBody(Buffer.from(body), key)).catch((error: unknown) =>
    failed(`The public listener does not answer this machine (${describeFailure(error)}).`),
  )
  if (typeof status !== 'number') return status
  if (status === 200) return ok('A signed push to this relay is verified and answered with 200.')
  if (status === 503)
    return failed(
      'Pushes are refused now: a signed push to this relay is answered with 503. The lines `store` and `disk`, or the log, say why.',
    )
  return failed(`A signed push to this relay is answered with ${status}.`)
}

function post(url: URL, body: string, signature: string): Promise<number> {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), 'x-service-hmac-sha256': signature }
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers, timeout: TIMEOUT_MS, agent: false } as const
    // Do not check the certificate: it names the host that the carrier uses, not the address used here. The push contains nothing secret.
    const request = url.protocol === 'https:' ? tlsRequest(url, { ...options, rejectUnauthorized: false }) : plainRequest(url, options)
    request.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    request.on('timeout', () => request.destroy(new Error('timeout')))
    request.on('error', reject)
    request.end(body)
  })
}
