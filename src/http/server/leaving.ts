import type { ServerResponse } from 'node:http'

/** Aborts when the client disconnects. If it disconnected before this call, no event will follow, so it aborts at once. */
export function leavingOf(res: ServerResponse): AbortController {
  const leaving = new AbortController()
  if (res.closed) leaving.abort()
  else res.once('close', () => leaving.abort())
  return leaving
}
