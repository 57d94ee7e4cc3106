import type { Job, JobTask } from '../../core/domain/admin/job.ts'
import type { Actor, Audited } from '../../core/domain/admin/operator-action.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { BatchReport, RecordOutcome, Reprocessed } from '../../core/domain/history/recording.ts'
import { readIdentifier } from '../../core/domain/identifiers.ts'
import type { HeldGroup, HeldSelection, InboxState, InspectedPush } from '../../core/domain/ingest/inbox.ts'
import type { RefusedSender } from '../../core/flow/ingest/receive.ts'
import type { Reads, Relay, Writes } from '../../core/flow/relay-part.ts'

export const INBOX_STATES = ['recorded', 'quarantined', 'expired', 'dismissed'] as const satisfies readonly InboxState[]
/** The states of pushes that `reprocessAll` can process again. */
export const HELD_STATES = ['quarantined', 'expired'] as const satisfies readonly HeldSelection['state'][]

/** Up to this many pushes are processed or dismissed while the operator waits. A job handles larger numbers. */
const AT_ONCE_MAX = 100

export interface ManageInboxPorts
  extends Pick<Relay, 'clock'>,
    Reads<'listInbox' | 'inspectPush' | 'countHeld'>,
    Writes<'reprocess' | 'reprocessHeld' | 'dismissPush' | 'dismissHeld' | 'startJob'> {
  /** Called with the report of each transaction that has processed pushes again. */
  readonly onCommitted: (report: BatchReport) => void
  /** Lists the latest senders whose signatures this replica has refused since its start, the latest first. */
  readonly refusedSenders: () => Promise<readonly RefusedSender[]>
  readonly work: () => void
}

interface InboxQuery {
  readonly state: InboxState | null
  readonly reason: string | null
  /** An identifier of the parcel, as raw text. */
  readonly parcel: string | null
  /** Only pushes received at this time or later, epoch milliseconds. */
  readonly from: number | null
  /** Only pushes received before this time, epoch milliseconds. */
  readonly to: number | null
  readonly cursor: number | null
  readonly limit: number
}

interface DismissOrder {
  readonly reason: string | null
  readonly dryRun: boolean
}

type Counted = { readonly kind: 'counted'; readonly count: number; readonly groups: readonly HeldGroup[] }
type Queued = { readonly kind: 'job'; readonly job: Job }

export type ReprocessAnswer =
  | Counted
  | Queued
  | { readonly kind: 'reprocessed'; readonly count: number; readonly outcomes: Readonly<Record<RecordOutcome['kind'], number>> }

export type DismissAnswer = Counted | Queued | { readonly kind: 'dismissed'; readonly count: number }

const REPROCESS_REFUSALS: Readonly<Record<Exclude<Reprocessed['kind'], 'done' | 'unknown'>, string>> = {
  settled: 'This push is recorded already.',
  body_gone: 'The bytes of this push are no longer kept (retention.raw).',
}

/** What operators do with received pushes (CONTRACT, `/relay/inbox`). Ids are raw text. Throws `not_found` if no push has the id. */
export type ManageInbox = ReturnType<typeof createManageInbox>

export function createManageInbox(ports: ManageInboxPorts) {
  const { write, reads, clock, onCommitted } = ports

  async function find(text: string): Promise<InspectedPush> {
    const id = readId(text)
    return (id === null ? null : await reads.inspectPush(id)) ?? unknown()
  }

  return {
    /** Lists pushes, the newest first. A null does not restrict the list. Throws `bad_tracking_number`. */
    async list({ state, reason, parcel, from, to, cursor, limit }: InboxQuery) {
      const identifier = parcel === null ? null : readIdentifier(parcel)
      const { pushes, next } = await reads.listInbox({ state, reason, parcel: identifier, fromMs: from, toMs: to, before: cursor, limit })
      return { pushes, next: next === null ? null : String(next) }
    },
    find,
    /** Counts the pushes in quarantine by reason. The reason with the newest push comes first. */
    quarantined: () => reads.countHeld('quarantined'),
    refusedSenders: ports.refusedSenders,
    /** Processes an unrecorded push again. Throws `not_reprocessable`. */
    async reprocess(text: string, by: Actor) {
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
    /**
     * Processes all pushes with this state and reason again, the oldest first. `reason` null: any. `dryRun`: only counts the pushes. If there
     * are more than a hundred, queues a job. Throws `too_many_jobs`.
     */
    async reprocessAll({ state, reason, dryRun }: HeldSelection & { readonly dryRun: boolean }, by: Actor): Promise<ReprocessAnswer> {
      const { groups, count, upTo } = await countHeld(ports, { state, reason })
      if (dryRun) return { kind: 'counted', count, groups }
      const selection = { state, reason }
      const nowMs = clock.now()
      const action = {
        atMs: nowMs,
        by,
        action: 'inbox.reprocessed',
        target: { kind: 'inbox', id: state },
        detail: { reason, count },
      } as const
      if (count > AT_ONCE_MAX) return await queue(ports, { task: { kind: 'reprocess', selection, upTo }, by: by.name, nowMs, action })
      const outcomes = { recorded: 0, duplicate: 0, quarantined: 0, expired: 0, erased: 0 }
      for (let after: number | null = count === 0 ? null : 0; after !== null; ) {
        const order: { readonly action?: typeof action } = after === 0 ? { action } : {}
        const batch = await write.reprocessHeld({ selection, after, upTo, limit: AT_ONCE_MAX, nowMs: clock.now(), ...order })
        onCommitted(batch.report)
        for (const outcome of batch.report.outcomes) outcomes[outcome.kind] += 1
        after = batch.next
      }
      return { kind: 'reprocessed', count: Object.values(outcomes).reduce((sum, each) => sum + each, 0), outcomes }
    },
    /** Decides that a quarantined push stays unrecorded, so that `reprocessAll` leaves it out. Throws `not_dismissable`. */
    async dismiss(text: string, by: Actor) {
      const { inboxId, state } = await find(text)
      const target = { kind: 'push', id: String(inboxId) } as const
      const action = { atMs: clock.now(), by, action: 'push.dismissed', target, detail: {} } as const
      const done = await write.dismissPush({ inboxId, action })
      if (done === 'unknown') return unknown()
      if (done === 'settled' && state !== 'dismissed') {
        throw new AppError('not_dismissable', 'Only a push in quarantine can be dismissed. This push is not in quarantine, or has left it.')
      }
      return await find(text)
    },
    /** Dismisses all quarantined pushes with this reason. `reason` and `dryRun`: as for `reprocessAll`. Throws `too_many_jobs`. */
    dismissAll: (order: DismissOrder, by: Actor) => dismissAll(ports, order, by),
  }
}

async function dismissAll(ports: ManageInboxPorts, { reason, dryRun }: DismissOrder, by: Actor): Promise<DismissAnswer> {
  const selection = { state: 'quarantined', reason } as const
  const { groups, count, upTo } = await countHeld(ports, selection)
  if (dryRun) return { kind: 'counted', count, groups }
  const nowMs = ports.clock.now()
  const action = {
    atMs: nowMs,
    by,
    action: 'inbox.dismissed',
    target: { kind: 'inbox', id: selection.state },
    detail: { reason, count },
  } as const
  if (count > AT_ONCE_MAX) return await queue(ports, { task: { kind: 'dismiss', selection, upTo }, by: by.name, nowMs, action })
  if (count === 0) return { kind: 'dismissed', count }
  const dismissed = await ports.write.dismissHeld({ reason, after: 0, upTo, limit: AT_ONCE_MAX, action })
  return { kind: 'dismissed', count: dismissed.count }
}

/** `upTo`: the id of the newest selected push. */
async function countHeld({ reads }: ManageInboxPorts, { state, reason }: HeldSelection) {
  const groups = (await reads.countHeld(state)).filter((group) => reason === null || group.reason === reason)
  const count = groups.reduce((sum, group) => sum + group.count, 0)
  return { groups, count, upTo: Math.max(0, ...groups.map(({ last }) => last.inboxId)) }
}

async function queue(
  { write, work }: ManageInboxPorts,
  order: Audited & { readonly task: JobTask; readonly by: string; readonly nowMs: number },
): Promise<Queued> {
  const job = await write.startJob(order)
  if (job === null) throw new AppError('too_many_jobs', 'A hundred jobs have not ended yet. Cancel one, or ask again later.')
  work()
  return { kind: 'job', job }
}

function readId(text: string): number | null {
  return /^\d{1,15}$/.test(text) ? Number(text) : null
}

function unknown(): never {
  throw new AppError('not_found', 'There is no push with this id in the inbox.')
}
