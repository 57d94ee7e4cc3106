import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'

type PostResult = { readonly status: number; readonly error: null } | { readonly status: null; readonly error: string }

export interface Poster {
  /** Never throws and never follows a redirect. */
  post(url: string, body: string, headers: Readonly<Record<string, string>>): Promise<PostResult>
  /** Aborts running requests and closes every connection. */
  stop(): void
}

export function createPoster(timeoutMs: number): Poster {
  const agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) }
  const stopping = new AbortController()

  const post: Poster['post'] = (url, body, headers) =>
    new Promise((resolve) => {
      const fail = (error: Error): void => resolve({ status: null, error: 'code' in error ? String(error.code) : error.name })
      const bytes = Buffer.from(body, 'utf8')
      const options = {
        method: 'POST',
        headers: { ...headers, 'Content-Length': bytes.length },
        signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(timeoutMs)]),
      }
      const request = url.startsWith('https:')
        ? httpsRequest(url, { ...options, agent: agents.https })
        : httpRequest(url, { ...options, agent: agents.http })
      request.on('error', fail)
      request.on('response', (response) => {
        response.on('error', fail)
        response.on('end', () => resolve({ status: response.statusCode ?? 0, error: null }))
        response.resume()
      })
      request.end(bytes)
    })

  return {
    post,
    stop: () => {
      stopping.abort()
      agents.http.destroy()
      agents.https.destroy()
    },
  }
}
