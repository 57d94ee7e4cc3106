import { AppError } from '../../core/domain/errors.ts'
import { NO_CONTEXT } from '../../core/domain/history/order-context.ts'
import { readIdentifier } from '../../core/domain/identifiers.ts'
import { readInput, wrongInput } from '../../core/domain/read-input.ts'
import type { Reads, Relay } from '../../core/flow/relay-part.ts'
import type { Session } from '../../core/store/engine.ts'
import { loadAnswersOf } from '../../core/store/history/answers.ts'
import { loadContexts } from '../../core/store/history/order-contexts.ts'
import { loadNames } from '../../core/store/history/parcels.ts'
import { describeRule, replay, type WatchdogRule, type WatchdogRules } from './watchdog.rules.ts'
import { watchdogs } from './watchdogs.config.ts'
import {
  countOpen,
  countStalled,
  countWaiting,
  heldSinceMs,
  type ListedBreach,
  listBreaches,
  listBreachesOfOrder,
  listBreachesOfParcel,
  listSizesAfter,
  loadFirstLoads,
  type OrderPlace,
} from './watchdogs.rows.ts'
import { fittingEntries, watchedOf } from './watchdogs.tx.ts'

/** A rule in effect. `loadedAtMs`: when it was first loaded as it is now; null: not yet. `open`: how many breaches of it last. */
export interface ShownRule {
  readonly rule: WatchdogRule
  readonly loadedAtMs: number | null
  readonly open: number
}

export interface WatchdogsView {
  readonly rules: readonly ShownRule[]
  /** How many parcels are told to be stalled once the carrier was asked about them. */
  readonly waiting: number
  /** Since when nothing is told, because the relay is deaf; null: it is not. */
  readonly heldSinceMs: number | null
}

/** What a rule would have said of a parcel. `endedAtMs` null: it would last. */
export interface TriedBreach {
  readonly rule: string
  readonly identifiers: readonly string[]
  readonly sinceMs: number
  readonly endedAtMs: number | null
}

/** `why`: of what its rule finds a parcel stalled; null: the rule that found it is gone or has changed. */
export interface ExplainedBreach extends ListedBreach {
  readonly why: string | null
}

export interface BreachQuery {
  readonly rule: string | null
  readonly isOpen: boolean
  /** Only the breaches of this parcel, all on one page. */
  readonly parcel: string | null
  /** Only the breaches of the parcels of the order with this number. Not together with `parcel`. */
  readonly reference: string | null
  readonly cursor: string | null
  readonly limit: number
}

/** Rules as in the config, where each has a name of its own. */
const triedRules = () =>
  watchdogs().superRefine((rules, issues) => {
    for (const [nth, { name }] of rules.entries())
      if (rules.findIndex((rule) => rule.name === name) < nth)
        issues.addIssue({ code: 'custom', path: [nth, 'name'], message: 'must be unique: a rule before it has this name' })
  })

/** One request tries rules on so many parcels. */
const TRIED_AT_ONCE = 250

export type ManageWatchdogs = ReturnType<typeof createManageWatchdogs>

export function createManageWatchdogs({
  reads,
  clock,
  rules,
  yieldToOthers,
}: Pick<Relay, 'clock'> &
  Reads<'session' | 'loadSightings'> & { readonly rules: () => WatchdogRules; readonly yieldToOthers: () => Promise<unknown> }) {
  const { session } = reads

  async function explain(breaches: readonly ListedBreach[]): Promise<readonly ExplainedBreach[]> {
    if (breaches.length === 0) return []
    const loads = await loadFirstLoads(session)
    return breaches.map((breach) => {
      const rule = rules().rules.find(({ name }) => name === breach.rule)
      // What lasts was judged by the rule as it is. What is over may have been told by an earlier one of the name.
      const isOfThis = breach.endedAtMs === null || breach.toldAtMs >= (loads.get(breach.rule) ?? Number.POSITIVE_INFINITY)
      return { ...breach, why: rule === undefined || !isOfThis ? null : describeRule(rule) }
    })
  }

  return {
    async view(): Promise<WatchdogsView> {
      const [loads, open, waiting, held] = await Promise.all([
        loadFirstLoads(session),
        countOpen(session),
        countWaiting(session),
        heldSinceMs(session),
      ])
      const shown = rules().rules.map((rule) => ({
        rule,
        loadedAtMs: loads.get(rule.name) ?? null,
        open: open.get(rule.name) ?? 0,
      }))
      return { rules: shown, waiting, heldSinceMs: held }
    },
    /** Counts the parcels that are stalled, for a glance; null: no rule watches over parcels. */
    stalled: async () => (rules().rules.length === 0 ? null : await countStalled(session)),
    /** Lists breaches, the one that was told last first; of an order parcel by parcel. Throws `not_found`: no parcel has the identifier, or the reference. */
    async list(query: BreachQuery) {
      const { parcel, reference } = query
      if (parcel !== null && reference !== null) throw wrongInput('query', 'reference', 'Give parcel or reference, not both.')
      const { breaches, next } = await (reference !== null
        ? ofOrder(session, reference, query)
        : parcel !== null
          ? ofParcel(session, parcel, query)
          : ofAll(session, query))
      return { breaches: await explain(breaches), next }
    },
    /**
     * Says what rules would have said of some parcels in the time `forMs` until now, had they been in effect. `body`: rules as in the config, unchecked. `after`: the
     * cursor of the answer before; null: from the first parcel. Throws `bad_request`, which names every mistake.
     */
    async tryRules(body: unknown, forMs: number, after: number | null) {
      const tried = readInput('body', triedRules(), body)
      const page = await listSizesAfter(session, { after: after ?? 0, limit: TRIED_AT_ONCE })
      const ids = fittingEntries(page, (row) => row.entry_count).map((row) => row.parcel_id)
      const [sightings, contexts, answers, names] = await Promise.all([
        reads.loadSightings(ids),
        loadContexts(session, ids),
        loadAnswersOf(session, ids),
        loadNames(session, ids),
      ])
      const nowMs = clock.now()
      const breaches: TriedBreach[] = []
      for (const id of ids) {
        const { parcel } = watchedOf(sightings.get(id) ?? [], contexts.get(id) ?? NO_CONTEXT, answers.get(id) ?? [])
        const identifiers = names.get(id) ?? []
        for (const rule of tried) {
          // Many rules on a long history take a second, and others wait for this thread.
          await yieldToOthers()
          const found = replay(rule, rules().zone, parcel, nowMs).filter((breach) => breach.sinceMs >= nowMs - forMs)
          breaches.push(...found.map((breach) => ({ rule: rule.name, identifiers, ...breach })))
        }
      }
      return {
        parcels: ids.length,
        breaches,
        next: page.length < TRIED_AT_ONCE && ids.length === page.length ? null : (ids.at(-1) ?? null),
      }
    },
  }
}

async function ofOrder(session: Session, reference: string, { rule, isOpen, cursor, limit }: BreachQuery) {
  const from = cursor === null ? { parcelId: 0, before: 0 } : placeOf(cursor)
  const found = await listBreachesOfOrder(session, { reference, rule, isOpen, from, limit })
  if (found !== null) return { ...found, next: found.next === null ? null : `${found.next.parcelId}.${found.next.before}` }
  if (cursor === null) throw new AppError('not_found', 'No parcel belongs to an order with this number.')
  return { breaches: [], next: null }
}

async function ofParcel(session: Session, parcel: string, { rule, isOpen }: BreachQuery) {
  const all = await listBreachesOfParcel(session, readIdentifier(parcel))
  if (all === null) throw new AppError('not_found', 'No parcel has this identifier.')
  return { breaches: all.filter((one) => (rule === null || one.rule === rule) && (!isOpen || one.endedAtMs === null)), next: null }
}

async function ofAll(session: Session, { rule, isOpen, cursor, limit }: BreachQuery) {
  if (cursor !== null && !/^\d{1,15}$/.test(cursor)) throw badCursor()
  const found = await listBreaches(session, { rule, isOpen, before: Number(cursor ?? Number.MAX_SAFE_INTEGER), limit: limit + 1 })
  const breaches: readonly ListedBreach[] = found.slice(0, limit)
  return { breaches, next: found.length > limit ? String(breaches.at(-1)?.id ?? '') : null }
}

function placeOf(cursor: string): OrderPlace {
  const [, parcelId, before] = /^(\d{1,15})\.(\d{1,15})$/.exec(cursor) ?? []
  if (parcelId === undefined || before === undefined) throw badCursor()
  return { parcelId: Number(parcelId), before: Number(before) }
}

function badCursor(): AppError {
  return new AppError('bad_request', 'The cursor is not one that the relay gave.')
}
