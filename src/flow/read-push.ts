import { type EventReading, parseWebhookEvent } from '../domain/webhook-event.ts'
import type { IncomingPush, ReceivedPush } from './ports.ts'

/** What a push says, read from its bytes on the thread that received it: the one that records has enough to do. */
export function readPush(received: ReceivedPush): IncomingPush {
  return { kind: 'push', ...received, reading: read(received) }
}

/** A body that our own code fails on is kept like one that is not understood: sent again it would fail again. */
function read({ body, contentEncoding }: ReceivedPush): EventReading {
  try {
    return parseWebhookEvent(body, contentEncoding)
  } catch {
    return { ok: false, reason: 'failed' }
  }
}
