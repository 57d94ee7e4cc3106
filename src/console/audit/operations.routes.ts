import { z } from 'zod'
import {
  ACTION_NAMES,
  ACTOR_KINDS,
  type ActionFilter,
  type KeptAction,
  LISTED_LENGTH_MAX,
  type ListedTarget,
  TARGET_KINDS,
} from '../../core/domain/admin/operator-action.ts'
import { readTallyKind, SPANS, type Tally, type TallyKind, type TallySpan } from '../../core/domain/admin/tally.ts'
import type { OperatorEventQuery, TimeCursor, ToldEvent } from '../../core/domain/delivery/operator-event.ts'
import { parseTypedIdentifier, TRACKING_IDS_MAX } from '../../core/domain/identifiers.ts'
import { wrongInput } from '../../core/domain/read-input.ts'
import type { Reads } from '../../core/flow/relay-part.ts'
import {
  type AnswerOf,
  instant as instantAnswer,
  named,
  numberedId,
  presentInstant,
  wholeNumber,
} from '../../core/http/server/answer-schemas.ts'
import { instant, oneOf, page, query, read, text } from '../../core/http/server/route.ts'
import { listRoute, queryRoute } from '../../core/http/server/route-shapes.ts'
import type { OperatorEventTable } from '../events/operator-events.ts'

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

/** Another version of the relay may have written other names. */
const keptName = (names: readonly string[]): z.ZodType<string> => z.enum(names)

const actionSchema = named('AuditedAction', () =>
  z.strictObject({
    id: numberedId(),
    at: instantAnswer(),
    by: z.strictObject({
      kind: keptName(ACTOR_KINDS),
      name: z.string(),
    }),
    address: z.string().nullable().describe('The address that the order came from; null: the machine of the relay.'),
    action: z.string().describe('What was done, such as `endpoint.changed`.'),
    target: z
      .strictObject({
        kind: keptName(TARGET_KINDS),
        id: z.string(),
      })
      .nullable(),
    detail: z.record(z.string(), z.unknown()).describe('More about the order, without secrets.'),
  }),
)

const talliesSchema = named('Tallies', () =>
  z.strictObject({
    tallies: z.array(
      z.strictObject({
        from: instantAnswer().describe('When the hour or day begins.'),
        counts: z.record(z.string(), wholeNumber()).describe('By name, such as `recorded` of pushes or `app:shop` of calls.'),
      }),
    ),
  }),
)

const timed = { ...page, cursor: read(readTimeCursor, 'must be the "next" of the previous page') }

export function operatorEventsRoute({ names, listed }: Pick<OperatorEventTable, 'names' | 'listed'>) {
  return listRoute('/relay/operator-events', {
    summary: 'List what happened',
    description: 'Operator events of the last 400 days, newest first, whether or not they are posted anywhere.',
    query: query({ ...timed, event: oneOf(names), from: instant, to: instant }),
    items: ['events', listed],
    example: 'event=endpoint_failing&limit=10',
    read: ({ operations }, { from, to, ...asked }) => operations.events({ ...asked, fromMs: from, toMs: to }),
    present: presentEvent,
  })
}

/** Counts, and the audit trail. */
export const OPERATIONS_ROUTES = [
  queryRoute('get', '/relay/tallies', {
    summary: 'Count by the hour or the day',
    description:
      'Counts for each hour of the last 8 days, or each day (UTC) of the last 400, oldest first. The last 10 seconds are missing.',
    query: query({
      kind: read(readTallyKind, 'must be pushes, missed, polls, attempts, calls, served, disk or endpoint:ID').describe(
        '`pushes` by outcome (the default), `missed` pushes by how late they were found, `polls` by outcome, `attempts` of all endpoints, `calls` to the carrier by who spends them, what was `served` to apps by source (`unavailable`: a 503; `hit` is not counted), the fewest free bytes of the `disk`, or the attempts of `endpoint:ID`.',
      ),
      span: oneOf(SPANS).describe('`hour` if it is left out.'),
      from: instant,
      to: instant,
    }),
    answers: { 200: ['The tallies', talliesSchema] },
    example: 'kind=calls&span=day',
    answer: async ({ operations }, { query: { kind, span, from, to } }) => {
      const tallies = await operations.tallies({ kind: kind ?? 'pushes', span: span ?? 'hour', fromMs: from, toMs: to })
      return [200, { tallies: tallies.map(({ fromMs, counts }) => ({ from: presentInstant(fromMs), counts })) }]
    },
  }),
  listRoute('/relay/audit', {
    summary: 'List who changed what',
    description:
      'The audit trail of the last 400 days, newest first: each order of an operator that was carried out. Even a short page has a `next` if older actions may match.',
    query: query({
      ...timed,
      by: text.pipe(z.string().max(LISTED_LENGTH_MAX).nullable()).describe('The name of who gave the order.'),
      action: oneOf(ACTION_NAMES).describe('What was done.'),
      target: read(readTargetText, 'must be a kind and an id, such as parcel:AB1001, endpoint:3 or delivery:12').describe(
        'What the order was about, such as `parcel:AB1001` (under any of its identifiers), `endpoint:3`, `delivery:12`, `push:5` or `job:2`.',
      ),
      from: instant,
      to: instant,
    }),
    items: ['actions', actionSchema],
    example: 'action=endpoint.changed&limit=10',
    read: ({ operations }, { from, to, ...asked }) => operations.actions({ ...asked, fromMs: from, toMs: to }),
    present: presentAction,
  }),
]

/** Parses `KIND:ID`. */
function readTargetText(given: string): ListedTarget | null {
  const at = given.indexOf(':')
  return at === -1 ? null : readTarget(given.slice(0, at), given.slice(at + 1))
}

function presentEvent({ id, event, atMs, detail }: ToldEvent): object {
  return { ...detail, id: String(id), event, at: presentInstant(atMs) }
}

function presentAction({ id, atMs, by, action, target, detail }: KeptAction): AnswerOf<typeof actionSchema> {
  return { id: String(id), at: presentInstant(atMs), by: { kind: by.kind, name: by.name }, address: by.address, action, target, detail }
}
