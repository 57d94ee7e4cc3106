import type { IncomingMessage, ServerResponse } from 'node:http'

/** The answer of a route. `json`: the body as text. */
export interface Answer {
  readonly status: number
  readonly json: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Call {
  readonly method: string
  /** The path as sent, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly authorization: string | undefined
  /** Reads the body and parses it as JSON. Undefined: it is not JSON, or too large. */
  readonly body: () => Promise<unknown>
}

const bodyBytesMax = 65_536

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) return undefined
    bytes += chunk.length
    if (bytes > bodyBytesMax) return undefined
    chunks.push(chunk)
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    return value
  } catch {
    return undefined
  }
}

export function callOf(request: IncomingMessage): Call {
  const [path = '', query = ''] = (request.url ?? '').split('?', 2)
  return {
    method: request.method ?? '',
    path,
    query: new URLSearchParams(query),
    authorization: request.headers.authorization,
    body: () => readJson(request),
  }
}

export function send(response: ServerResponse, { status, json, headers }: Answer): void {
  const body = Buffer.from(json, 'utf8')
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': body.length, ...headers })
  response.end(body)
}

export function answerOf(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, json: JSON.stringify(value), headers }
}

/** The carrier's specification shows no error answers, so this shape is invented. */
export function errorAnswer(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return answerOf(status, { message }, headers)
}

/** Returns a member of a JSON object. Undefined: the value is not an object, or has no such member. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined
}
