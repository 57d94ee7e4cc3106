import type { IncomingMessage } from 'node:http'
import { headerValues } from './header-values.ts'

/** Version, trace id, parent id and flags (W3C Trace Context). Later versions may append more; ids of zeros alone are invalid. */
const TRACEPARENT =
  /^(?:00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}|(?!00|ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?)$/

/** The trace that a request belongs to, as a field of its log lines: `traceId` from its only `traceparent` header, if that is valid. */
export function traceOf(req: Pick<IncomingMessage, 'rawHeaders'>): { readonly traceId?: string } {
  const values = headerValues(req, 'traceparent')
  const parts = values.length === 1 ? TRACEPARENT.exec(values[0] ?? '') : null
  const traceId = parts?.[1] ?? parts?.[2]
  return traceId === undefined ? {} : { traceId }
}
