import type { IncomingPush, ReceivedPush } from '../../domain/ingest/inbox.ts'
import { type ParsedEvent, parseWebhookEvent } from '../../domain/ingest/parse-push.ts'

/** Reads a body as one event: `parseWebhookEvent`, or what gives the same. */
export type ParseEvent = (body: Uint8Array, contentEncoding: string | null) => ParsedEvent

/** What a push says, read from its bytes on the thread that received it: the one that records has enough to do. */
export function parsePush(received: ReceivedPush, parseEvent: ParseEvent = parseWebhookEvent): IncomingPush {
  const { body, contentEncoding, receivedAtMs, keyIndex } = received
  return { kind: 'push', body, contentEncoding, receivedAtMs, keyIndex, reading: read(received, parseEvent) }
}

/** A body that our own code fails on is kept like one that is not understood: sent again it would fail again. */
function read({ body, contentEncoding }: ReceivedPush, parseEvent: ParseEvent): ParsedEvent {
  try {
    return parseEvent(body, contentEncoding)
  } catch {
    return { ok: false, reason: 'failed' }
  }
}
