import type { Actor } from '../../domain/admin/operator-action.ts'
import { AppError } from '../../domain/errors.ts'
import type { BatchReport, RecordOutcome, Reprocessed } from '../../domain/history/recording.ts'
import type { InboxEntry, InboxPush, InspectedPush } from '../../domain/ingest/inbox.ts'
import type { Clock } from '../ports.ts'
import type { ReadSide } from '../read-side.ts'
import type { WriteSide } from '../write-side.ts'

export const INBOX_STATES = ['recorded', 'quarantined', 'expired'] as const satisfies readonly InboxEntry['state'][]

export interface ManageInboxPorts {
  readonly write: Pick<WriteSide, 'reprocess'>
  readonly reads: Pick<ReadSide, 'listInbox' | 'findPush'>
  readonly clock: Clock
  /** Receives the report of the commit, as after any other commit. */
  readonly onCommitted: (report: BatchReport) => void
}

/**
 * How operators view and reprocess received pushes (CONTRACT, `/relay/inbox`). Ids are raw path text and throw `not_found` if there is no
 * such push.
 */
export interface ManageInbox {
  /** Lists pushes, the newest first. Null: any state, from the newest on. */
  list(query: {
    readonly state: InboxEntry['state'] | null
    readonly cursor: number | null
    readonly limit: number
  }): Promise<{ readonly pushes: readonly InboxPush[]; readonly next: string | null }>
  find(id: string): Promise<InspectedPush>
  /** Reprocesses a push that was not recorded. Throws `not_reprocessable`. */
  reprocess(id: string, by: Actor): Promise<RecordOutcome>
}

const REPROCESS_REFUSALS: Readonly<Record<Exclude<Reprocessed['kind'], 'done' | 'unknown'>, string>> = {
  settled: 'This push is recorded already.',
  body_gone: 'The bytes of this push are no longer kept (retention.raw).',
}

export function createManageInbox({ write, reads, clock, onCommitted }: ManageInboxPorts): ManageInbox {
  return {
    async list({ state, cursor, limit }) {
      const { pushes, next } = await reads.listInbox({ state, before: cursor, limit })
      return { pushes, next: next === null ? null : String(next) }
    },
    async find(text) {
      const id = readId(text)
      return (id === null ? null : await reads.findPush(id)) ?? unknown()
    },
    async reprocess(text, by) {
      const inboxId = readId(text) ?? unknown()
      const nowMs = clock.now()
      const action = { atMs: nowMs, by, action: 'push.reprocessed', target: { kind: 'push', id: String(inboxId) }, detail: {} } as const
      const done = await write.reprocess({ inboxId, nowMs, action })
      if (done.kind === 'unknown') return unknown()
      if (done.kind !== 'done') throw new AppError('not_reprocessable', REPROCESS_REFUSALS[done.kind])
      onCommitted(done.report)
      const [outcome] = done.report.outcomes
      if (outcome === undefined) throw new Error('reprocessing a push returned no outcome')
      return outcome
    },
  }
}

function readId(text: string): number | null {
  return /^\d{1,15}$/.test(text) ? Number(text) : null
}

function unknown(): never {
  throw new AppError('not_found', 'There is no push with this id in the inbox.')
}
