import type { ServerResponse } from 'node:http'

/** Is aborted when the client disconnects. If it has disconnected already, no event follows, so this is aborted at once. */
export function leavingOf(res: ServerResponse): AbortController {
  const leaving = new AbortController()
  if (res.closed) leaving.abort()
  else res.once('close', () => leaving.abort())
  return leaving
}
