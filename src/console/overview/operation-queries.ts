import {
  type ActionFilter,
  type KeptAction,
  LISTED_LENGTH_MAX,
  type ListedTarget,
  TARGET_KINDS,
} from '../../core/domain/admin/operator-action.ts'
import type { Tally, TallyKind, TallySpan } from '../../core/domain/admin/tally.ts'
import type { OperatorEventQuery, TimeCursor, ToldEvent } from '../../core/domain/delivery/operator-event.ts'
import { parseTypedIdentifier, TRACKING_IDS_MAX } from '../../core/domain/identifiers.ts'
import { wrongInput } from '../../core/domain/read-input.ts'
import type { Reads } from '../../core/flow/relay.ts'

/** Lists the events that operators were notified of, and the orders that they gave (CONTRACT, `/relay/operator-events`, `/relay/audit`). */
export type OperationQueries = ReturnType<typeof createOperationQueries>

type Parts = Reads<'listOperatorEvents' | 'listActions' | 'existingTargets' | 'listTallies' | 'inspectParcel'>

export function createOperationQueries({ reads }: Parts) {
  /** An order about a parcel names the identifier by which it was given, which may be any of the parcel's. */
  async function withOtherNames(target: ListedTarget): Promise<readonly ListedTarget[]> {
    const parcel = target.kind === 'parcel' ? await reads.inspectParcel(target.id) : null
    const others = (parcel?.identifiers ?? []).flatMap(({ value }) => (value === target.id ? [] : { kind: 'parcel', id: value }))
    return [target, ...others.slice(0, TRACKING_IDS_MAX)]
  }

  return {
    /** Lists events, the newest first. Null: no restriction; `cursor` null: the first page. */
    async events({ cursor, ...query }: Omit<OperatorEventQuery, 'before'> & { readonly cursor: TimeCursor | null }): Promise<{
      readonly events: readonly ToldEvent[]
      readonly next: string | null
    }> {
      const events = await reads.listOperatorEvents({ ...query, before: cursor })
      return { events, next: nextAfter(events, query.limit) }
    },
    /** Lists the stored counts of a kind, by the hour or the day, the oldest first. Null: no limit. */
    tallies: ({
      fromMs,
      toMs,
      ...query
    }: {
      readonly kind: TallyKind
      readonly span: TallySpan
      readonly fromMs: number | null
      readonly toMs: number | null
    }): Promise<readonly Tally[]> => reads.listTallies({ ...query, fromMs: fromMs ?? 0, toMs: toMs ?? Number.MAX_SAFE_INTEGER }),
    /** Lists actions of the audit trail, the newest first. Throws `bad_request` if `toMs` is not later than `fromMs`. */
    async actions({
      cursor,
      target,
      ...query
    }: ActionFilter & {
      readonly target: ListedTarget | null
      readonly cursor: TimeCursor | null
      readonly limit: number
    }): Promise<{
      readonly actions: readonly KeptAction[]
      /** The parcels, deliveries and pushes among what the actions are about that still exist, each as its kind, a colon, and its id. */
      readonly existing: ReadonlySet<string>
      readonly next: string | null
    }> {
      if (query.fromMs !== null && query.toMs !== null && query.fromMs >= query.toMs)
        throw wrongInput('query', 'to', 'to must be later than from.')
      const targets = target === null ? null : await withOtherNames(target)
      const { actions, next } = await reads.listActions({ ...query, targets, before: cursor })
      const existing = await reads.existingTargets(actions.flatMap(({ target: about }) => about ?? []))
      return { actions, existing: new Set(existing.map(({ kind, id }) => `${kind}:${id}`)), next: next === null ? null : textOf(next) }
    },
  }
}

function nextAfter(rows: readonly TimeCursor[], limit: number): string | null {
  const last = rows.length < limit ? undefined : rows.at(-1)
  return last === undefined ? null : textOf(last)
}

function textOf({ atMs, id }: TimeCursor): string {
  return `${atMs}.${id}`
}

const CURSOR = /^(\d{1,15})\.(\d{1,15})$/

/** Parses the cursor of a page; null: the text is no cursor. */
export function readTimeCursor(text: string): TimeCursor | null {
  const [, atMs, id] = CURSOR.exec(text) ?? []
  return atMs === undefined || id === undefined ? null : { atMs: Number(atMs), id: Number(id) }
}

/** Parses what listed actions are about; null: nothing can be called so. */
export function readTarget(kind: string, id: string): ListedTarget | null {
  if (!TARGET_KINDS.some((known) => known === kind)) return null
  if (kind !== 'parcel') return id === '' || id.length > LISTED_LENGTH_MAX ? null : { kind, id }
  const identifier = parseTypedIdentifier(id)
  return identifier === null ? null : { kind, id: identifier }
}
