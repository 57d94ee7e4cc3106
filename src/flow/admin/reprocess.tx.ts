import { type RecordOptions, type RecordPorts, recordAlone, reportOf } from '../history/record.tx.ts'
import { parsePush } from '../ingest/parse-push.ts'
import type { WriteSide } from '../write-side.ts'
import type { WriteTx } from '../write-store.ts'

/**
 * Processes a push that is in the inbox and was not recorded again: a later version may understand it, a parcel have room, the clock be right.
 * It counts as received when it was, or, if the clock was ahead then, now.
 */
export function createReprocess(ports: RecordPorts, options: RecordOptions): Pick<WriteSide, 'reprocess'> {
  const { store, clock } = ports
  return {
    reprocess: ({ inboxId, nowMs }) =>
      store.transaction(async (tx) => {
        const startedAt = clock.monotonic()
        const held = await tx.findPush(inboxId)
        if (held === null) return { kind: 'unknown' }
        if (held.state === 'recorded') return { kind: 'settled' }
        const { body, contentEncoding, keyIndex } = held
        if (body === null) return { kind: 'body_gone' }
        const push = parsePush({ body, contentEncoding, keyIndex, receivedAtMs: Math.min(held.receivedAtMs, nowMs) })
        // It has its place in the inbox: there it is kept otherwise, and never taken back.
        const inPlace: WriteTx = { ...tx, saveInbox: (entry) => tx.resettlePush(inboxId, entry), deleteInbox: async () => {} }
        const recorded = await recordAlone(inPlace, push, ports, options)
        return { kind: 'done', report: reportOf([recorded], clock.monotonic() - startedAt) }
      }),
  }
}
