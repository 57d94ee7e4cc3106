import type { ServerResponse } from 'node:http'

/** Returns a controller that aborts when the client disconnects. If the client is gone already, no event follows, so it aborts at once. */
export function leavingOf(res: ServerResponse): AbortController {
  const leaving = new AbortController()
  if (res.closed) leaving.abort()
  else res.once('close', () => leaving.abort())
  return leaving
}
