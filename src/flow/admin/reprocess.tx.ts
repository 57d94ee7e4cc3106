import type { RecordRules } from '../../domain/history/record-rules.ts'
import type { IncomingPush } from '../../domain/ingest/inbox.ts'
import { parsePush } from '../../domain/ingest/parse-push.ts'
import { notAhead } from '../../domain/put-back.ts'
import { audit } from '../audit.tx.ts'
import { failedPush, learn, orQuarantined, type RecordPorts, recordTogether, reportOf } from '../history/record.tx.ts'
import type { WriteSide } from '../write-side.ts'

type Reprocess = Parameters<WriteSide['reprocess']>[0]

/**
 * Reprocesses a push of the inbox that was not recorded: a later version may understand it, its parcel may have room, or the clock may have
 * been corrected.
 */
export function createReprocess(ports: RecordPorts, rules: RecordRules): Pick<WriteSide, 'reprocess'> {
  const { store, clock } = ports
  const record = ({ inboxId, nowMs, ...order }: Reprocess, prepared: (push: IncomingPush) => IncomingPush) =>
    store.transaction(async (tx) => {
      const held = await tx.findPush(inboxId)
      if (held === null) return 'unknown'
      if (held.state === 'recorded') return 'settled'
      const { body, contentEncoding, keyIndex } = held
      if (body === null) return 'body_gone'
      const push = parsePush({ body, contentEncoding, keyIndex, receivedAtMs: notAhead(held.receivedAtMs, nowMs) })
      const done = await recordTogether(tx, [{ ...prepared(push), inboxId }], ports, rules)
      audit(tx, order, { outcome: done.recorded[0]?.outcome.kind ?? null })
      return done
    })
  return {
    async reprocess(request) {
      const startedAt = clock.monotonic()
      const done = await orQuarantined(
        ports,
        () => record(request, (push) => push),
        () => record(request, failedPush),
      )
      if (typeof done === 'string') return { kind: done }
      learn(done, ports)
      return { kind: 'done', report: reportOf(done.recorded, clock.monotonic() - startedAt) }
    },
  }
}
