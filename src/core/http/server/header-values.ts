import type { IncomingMessage } from 'node:http'

/** Returns every value of a header, in order. `req.headers` hides repeated headers: Node joins them, or drops all but the first. */
export function headerValues({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): readonly string[] {
  const values: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const key = rawHeaders[index] ?? ''
    if (key.length === name.length && key.toLowerCase() === name) values.push(rawHeaders[index + 1] ?? '')
  }
  return values
}

/** A `traceparent` header: version, trace id, parent id and flags (W3C Trace Context). Later versions may append fields. Zero ids are invalid. */
const TRACEPARENT =
  /^(?:00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}|(?!00|ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?)$/

/** Returns the trace id of a request as a field for log lines. The field is absent unless the request has exactly one valid `traceparent`. */
export function traceOf(req: Pick<IncomingMessage, 'rawHeaders'>): { readonly traceId?: string } {
  const values = headerValues(req, 'traceparent')
  const parts = values.length === 1 ? TRACEPARENT.exec(values[0] ?? '') : null
  const traceId = parts?.[1] ?? parts?.[2]
  return traceId === undefined ? {} : { traceId }
}
