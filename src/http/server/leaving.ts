import type { ServerResponse } from 'node:http'

/** Aborts when the client disconnects; at once if it did so while its access was judged, because no event tells of that any more. */
export function leavingOf(res: ServerResponse): AbortController {
  const leaving = new AbortController()
  if (res.closed) leaving.abort()
  else res.once('close', () => leaving.abort())
  return leaving
}
