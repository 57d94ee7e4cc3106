import type { Audited } from '../../core/domain/admin/operator-action.ts'
import type { ChangeSet } from '../../core/domain/history/change-set.ts'
import type { BatchReport, RecordRules, Reprocessed } from '../../core/domain/history/recording.ts'
import type { HeldPush, HeldRange, HeldSelection, IncomingPush } from '../../core/domain/ingest/inbox.ts'
import { parsePush } from '../../core/domain/ingest/parse-push.ts'
import { notAhead } from '../../core/domain/instant.ts'
import { audit } from '../../core/flow/audit.tx.ts'
import { failedPush, learn, orQuarantined, type RecordPorts, recordTogether, reportOf } from '../../core/flow/history/record.tx.ts'
import { dismissHeld, dismissPush, listHeld } from '../../core/store/ingest/held-pushes.ts'
import { findPush } from '../../core/store/ingest/inbox-lists.ts'
import type { WriteTx } from '../../core/store/write-store.ts'

type Reprocess = Audited & { readonly inboxId: number; readonly nowMs: number }
type Prepare = (push: IncomingPush) => IncomingPush

/**
 * Creates the functions that process unrecorded pushes of the inbox again. Now it may be possible to record these pushes: a newer version of
 * the relay understands them, their parcels have room again, or the clock was corrected.
 */
export function createReprocess(ports: RecordPorts, rules: RecordRules, batches: ReprocessBatches) {
  const { store, clock } = ports
  const record = ({ inboxId, nowMs, ...order }: Reprocess, prepared: Prepare) =>
    store.transaction(async (tx) => {
      const held = await findPush(tx, inboxId)
      if (held === null) return 'unknown'
      if (held.state === 'recorded') return 'settled'
      const push = incomingOf(held, inboxId, nowMs)
      if (push === null) return 'body_gone'
      const done = await recordTogether(tx, [prepared(push)], ports, rules)
      audit(tx, order, { outcome: done.recorded[0]?.outcome.kind ?? null })
      return done
    })
  return {
    /**
     * Reprocesses a quarantined or expired push of the inbox as if it had arrived now. If it still cannot be recorded, it stays in the inbox
     * with the new reason.
     */
    async reprocess(request: Reprocess): Promise<Reprocessed> {
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
    /** Reprocesses up to `limit` selected pushes in the same way, the oldest first, with inbox ids above `after` and up to `upTo`. */
    async reprocessHeld({ action, ...request }: HeldBatch & Audited) {
      const { report, done } = await batches.run((reprocess) =>
        store.transaction(async (tx) => {
          const done = await reprocess(tx, request)
          if (action !== undefined) audit(tx, { action })
          return { done }
        }),
      )
      return { report, next: done.next }
    },
    /**
     * Dismisses a quarantined push, which stays unrecorded unless it is reprocessed. `done`: the push is dismissed. `settled`: it was not in
     * quarantine. `unknown`: there is no such push.
     */
    dismissPush: ({ inboxId, ...order }: Audited & { readonly inboxId: number }) =>
      store.transaction(async (tx) => {
        if (await dismissPush(tx, inboxId)) {
          audit(tx, order)
          return 'done'
        }
        return (await findPush(tx, inboxId)) === null ? 'unknown' : 'settled'
      }),
    /** Dismisses up to `limit` quarantined pushes of a reason, the oldest first, with inbox ids above `after` and up to `upTo`. */
    dismissHeld: ({ action, ...request }: Audited & Pick<HeldSelection, 'reason'> & HeldRange) =>
      store.transaction(async (tx) => {
        const dismissed = await dismissHeld(tx, request)
        if (action !== undefined) audit(tx, { action })
        return dismissed
      }),
  }
}

interface HeldBatch extends HeldRange {
  readonly selection: HeldSelection
  readonly nowMs: number
}

export interface ReprocessedHeld extends Pick<ChangeSet, 'recorded' | 'scanSamples' | 'foundByPoll'> {
  /** The inbox id of the last push of the batch, to continue after it; null: this was the last batch. */
  readonly next: number | null
}

/** Processes a batch of pushes again, in a transaction of the caller. */
export type ReprocessIn = (tx: WriteTx, batch: HeldBatch) => Promise<ReprocessedHeld>

export interface ReprocessBatches {
  /**
   * Runs a transaction that may process a batch again. `done` null: it processed no batch. After the commit, the model of the carrier learns
   * from the batch. If `work` fails although the store works, there is a bug. Then `work` runs again with only the first push of the batch.
   * If it fails again, this push goes into quarantine.
   */
  run<Result extends { readonly done: ReprocessedHeld | null }>(
    work: (reprocess: ReprocessIn) => Promise<Result>,
  ): Promise<Result & { readonly report: BatchReport }>
}

export function createReprocessBatches(ports: RecordPorts, rules: RecordRules): ReprocessBatches {
  const { clock } = ports
  const upTo =
    (most: number, prepared: Prepare): ReprocessIn =>
    async (tx, { selection, nowMs, ...range }) => {
      const { pushes, next } = await listHeld(tx, { ...selection, ...range, limit: Math.min(range.limit, most) })
      const incoming = pushes.flatMap((push) => incomingOf(push, push.inboxId, nowMs) ?? []).map(prepared)
      if (incoming.length === 0) return { recorded: [], scanSamples: [], foundByPoll: [], next }
      return { ...(await recordTogether(tx, incoming, ports, rules)), next }
    }
  return {
    async run(work) {
      const startedAt = clock.monotonic()
      const asTheyAre: Prepare = (push) => push
      const result = await orQuarantined(
        ports,
        () => work(upTo(Number.MAX_SAFE_INTEGER, asTheyAre)),
        () =>
          orQuarantined(
            ports,
            () => work(upTo(1, asTheyAre)),
            () => work(upTo(1, failedPush)),
          ),
      )
      if (result.done !== null) learn(result.done, ports)
      return { ...result, report: reportOf(result.done?.recorded ?? [], clock.monotonic() - startedAt) }
    },
  }
}

/** Makes a stored push ready to be recorded. Null: its bytes were deleted. */
function incomingOf({ body, contentEncoding, keyIndex, receivedAtMs }: HeldPush, inboxId: number, nowMs: number): IncomingPush | null {
  if (body === null) return null
  return { ...parsePush({ body, contentEncoding, keyIndex, receivedAtMs: notAhead(receivedAtMs, nowMs) }), inboxId }
}
