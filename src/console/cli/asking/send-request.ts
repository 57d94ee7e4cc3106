import { request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { getCACertificates } from 'node:tls'

export interface RequestToSend {
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** A private certificate authority (PEM), trusted in addition to the public authorities. */
  readonly ca?: string | undefined
  /** The only certificate (PEM) to accept, even if it is for another host name. Absent: any trusted certificate for the host name. */
  readonly pinned?: string | undefined
  /** The request fails when the connection was silent for this long. */
  readonly timeoutMs: number
}

export interface Answer {
  readonly status: number
  /** The body, parsed if it is JSON, else as text. */
  readonly body: unknown
}

/** Sends a request. Rejects on a redirect or an incomplete answer. (`fetch` is no option, because it cannot trust a private authority.) */
export async function sendRequest(url: string, { method, headers = {}, body, timeoutMs, ...trust }: RequestToSend): Promise<Answer> {
  const { status, type, text } = await new Promise<{ status: number; type: string; text: string }>((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const options = { method, headers: { ...headers, ...length }, timeout: timeoutMs, agent: false } as const
    const request = url.startsWith('https:') ? tlsRequest(url, { ...options, ...tlsOptionsOf(trust) }) : plainRequest(url, options)
    request.on('response', (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', reject)
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, type: response.headers['content-type'] ?? '', text: Buffer.concat(parts).toString() })
      })
    })
    request.on('timeout', () => request.destroy(new Error('it sends nothing')))
    request.on('error', reject)
    request.end(body)
  })
  if (status >= 300 && status < 400) throw new Error('the server there answers with a redirect')
  return { status, body: type.includes('json') ? parse(text) : text }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Error('the server there sends no valid JSON', { cause })
  }
}

function tlsOptionsOf({ ca, pinned }: Pick<RequestToSend, 'ca' | 'pinned'>) {
  if (pinned !== undefined) return { ca: [pinned], allowPartialTrustChain: true, checkServerIdentity: () => undefined }
  return ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }
}
