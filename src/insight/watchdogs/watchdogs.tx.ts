import { type EndpointState, takes } from '../../core/domain/delivery/endpoint-state.ts'
import {
  asksForNews,
  encodeWatchdogEvent,
  eventOf,
  filteredOf,
  type ToldParcel,
  type WatchdogTold,
} from '../../core/domain/delivery/watchdog-event.ts'
import { deriveEntries, type Entry, instantsTie, orderHistory } from '../../core/domain/history/history.ts'
import { filterableLabels, NO_CONTEXT, type OrderContext } from '../../core/domain/history/order-context.ts'
import type { ParcelState } from '../../core/domain/history/parcel-state.ts'
import { type KeptAnswer, presentParcel } from '../../core/domain/history/pull-response.ts'
import type { KeptSighting } from '../../core/domain/history/sightings.ts'
import { loadAnswersOf } from '../../core/store/history/answers.ts'
import { loadContexts } from '../../core/store/history/order-contexts.ts'
import { loadNames, pollableIdentifiers } from '../../core/store/history/parcels.ts'
import { loadOrders } from '../../core/store/history/sighting-rows.ts'
import { BREACHES_MAX, loadBreachesOf, removeBreaches, removeWatched } from '../../core/store/history/watched.ts'
import type { Transactions, WriteTx } from '../../core/store/write-store.ts'
import {
  type FirstLoads,
  judge,
  type KnownBreach,
  type Verdict,
  type WatchdogRule,
  type WatchdogRules,
  type WatchedParcel,
} from './watchdog.rules.ts'
import {
  addBreach,
  askForSweep,
  endBreach,
  findDue,
  findWaiting,
  heldSinceMs,
  listParcelsAfter,
  listWatchedAfter,
  loadStoredRules,
  saveDue,
  saveHeldSince,
  saveStoredRules,
  takeSweepOrder,
} from './watchdogs.rows.ts'

interface Look {
  readonly nowMs: number
  readonly limit: number
  readonly mayTellUnchecked: boolean
  readonly isMixed?: boolean
}

interface ClaimSuspects {
  readonly nowMs: number
  readonly limit: number
  readonly leaseMs: number
  readonly except: readonly number[]
  readonly isDeaf?: boolean
}

interface SettleSuspect {
  readonly parcelId: number
  readonly nowMs: number
  readonly isUnknown: boolean
  readonly isAnswering: boolean
}

/** What a look has found. */
interface LookResult {
  /** How many events were added to the feed. */
  readonly told: number
  /** How many parcels were looked at. */
  readonly looked: number
  /** Whether more parcels may be due. */
  readonly isMore: boolean
}

/** After this many polls of a parcel in a row have failed while the carrier answers others, it is told to be stalled unchecked. */
const FAILURES_MAX = 3

export function createWatchdogs(store: Transactions, current: { rules: WatchdogRules }) {
  const ofRole = { ofRole: 'poller' } as const
  return {
    /** Takes the rules of the config. Parcels are judged by them in later looks. */
    async adjustWatchdogs(rules: WatchdogRules) {
      const isSame = JSON.stringify(rules) === JSON.stringify(current.rules)
      current.rules = rules
      if (!isSame) await store.transaction(askForSweep, { ofRole: 'any' })
    },
    /**
     * Looks at the parcels that are due. `mayTellUnchecked`: also tells which are stalled of those about which the carrier could not be asked. `isMixed`:
     * whether replicas have different configs now; when they have not any more, all parcels are judged anew.
     */
    lookAtWatched: ({ nowMs, limit, mayTellUnchecked, isMixed = false }: Look) =>
      store.transaction(async (tx): Promise<LookResult> => {
        const { loads, sweptTo } = await takeRules(tx, current.rules, nowMs, isMixed)
        const due = [...(await findDue(tx, { nowMs, limit })), ...(mayTellUnchecked ? await findWaiting(tx, { limit }) : [])]
        const swept = sweptTo === null || due.length >= limit ? null : await sweepAfter(tx, current.rules, sweptTo, limit)
        const ids = [...new Set([...due, ...(swept ?? [])])]
        const { told, left } = await judgeAll(tx, ids, { ...current.rules, loads, nowMs, mayTellUnchecked })
        const judged = swept?.slice(0, swept.findIndex((id) => left.has(id)) >>> 0)
        if (judged !== undefined) await saveSwept(tx, judged.length < limit && left.size === 0 ? null : (judged.at(-1) ?? sweptTo))
        return { told, looked: ids.length - left.size, isMore: due.length >= limit || swept?.length === limit || left.size > 0 }
      }, ofRole),
    /** Finds parcels about which to ask the carrier, leases their polls, and tells those about which it cannot be asked, unless the relay is deaf. */
    claimSuspects: ({ nowMs, limit, leaseMs, except, isDeaf = false }: ClaimSuspects) =>
      store.transaction(async (tx) => {
        const { loads } = await takeRules(tx, current.rules, nowMs)
        const found = await findWaiting(tx, { limit: limit + except.length })
        const ids = found.filter((id) => !except.includes(id)).slice(0, limit)
        const judged = await judgeAll(tx, ids, { ...current.rules, loads, nowMs, mayTellUnchecked: false })
        const named = await Promise.all(
          judged.mustAsk.map(async (parcelId) => ({ parcelId, identifiers: await pollableIdentifiers(tx, parcelId, nowMs) })),
        )
        const nameless = named.filter(({ identifiers }) => identifiers.length === 0).map(({ parcelId }) => parcelId)
        const unchecked = await judgeAll(tx, isDeaf ? [] : nameless, { ...current.rules, loads, nowMs, mayTellUnchecked: true })
        const suspects = named.filter(({ identifiers }) => identifiers.length > 0)
        tx.leasePolls(
          suspects.map(({ parcelId }) => parcelId),
          nowMs + leaseMs,
        )
        return { suspects, told: judged.told + unchecked.told, looked: ids.length, isMore: ids.length === limit }
      }, ofRole),
    /** Notes that verdicts are held back, since `sinceMs` unless they were before; null: they are not. Returns since when. */
    noteHeld: ({ sinceMs }: { readonly sinceMs: number | null }) =>
      store.transaction(async (tx) => {
        const known = await heldSinceMs(tx)
        // A time ahead of the clock is of a clock that was put back.
        const heldMs = sinceMs === null ? null : Math.min(known ?? sinceMs, sinceMs)
        if (heldMs !== known) await saveHeldSince(tx, heldMs)
        return heldMs
      }, ofRole),
    /** Judges a parcel after the carrier was asked about it. `isAnswering`: whether the carrier answers questions about other parcels. */
    settleSuspect: ({ parcelId, nowMs, isUnknown, isAnswering }: SettleSuspect) =>
      store.transaction(async (tx): Promise<LookResult> => {
        const { loads } = await takeRules(tx, current.rules, nowMs)
        const failures = (await tx.findParcel(parcelId))?.failures ?? 0
        const mayTellUnchecked = isUnknown || (isAnswering && failures >= FAILURES_MAX)
        const { told } = await judgeAll(tx, [parcelId], { ...current.rules, loads, nowMs, mayTellUnchecked })
        return { told, looked: 1, isMore: false }
      }, ofRole),
  }
}

/**
 * Compares the rules of the config with those that the store knows. A rule that is new or was changed counts from now on, and all are judged anew.
 * `mixed`: whether replicas have different configs; null: as before.
 */
async function takeRules(
  tx: WriteTx,
  { rules, zone }: WatchdogRules,
  nowMs: number,
  mixed: boolean | null = null,
): Promise<{ readonly loads: FirstLoads; readonly sweptTo: number | null }> {
  const known = await loadStoredRules(tx)
  const texts = rules.map((rule) => ({ name: rule.name, rule: JSON.stringify(rule.notBy === null ? rule : { ...rule, zone }) }))
  const before = new Map(known.rules.map((one) => [one.name, one]))
  const after = texts.map((one) => {
    const same = before.get(one.name)
    // A time ahead of the clock is of a clock that was put back.
    return { ...one, loadedAtMs: same?.rule === one.rule ? Math.min(same.loadedAtMs, nowMs) : nowMs }
  })
  const isAsked = await takeSweepOrder(tx)
  const wasMixed = known.isMixed === true
  const isMixed = mixed ?? wasMixed
  const hasChanged =
    isAsked ||
    (wasMixed && !isMixed) ||
    after.length !== known.rules.length ||
    after.some(({ name, rule }) => before.get(name)?.rule !== rule)
  const next = { rules: after, sweptTo: hasChanged ? 0 : known.sweptTo, ...(isMixed ? { isMixed } : {}) }
  if (JSON.stringify(next) !== JSON.stringify(known)) await saveStoredRules(tx, next)
  return { loads: new Map(after.map(({ name, loadedAtMs }) => [name, loadedAtMs])), sweptTo: next.sweptTo }
}

async function saveSwept(tx: WriteTx, sweptTo: number | null): Promise<void> {
  await saveStoredRules(tx, { ...(await loadStoredRules(tx)), sweptTo })
}

/** Without a rule only the parcels that were watched over need a look, to end what was told of them. */
function sweepAfter(tx: WriteTx, { rules }: WatchdogRules, after: number, limit: number): Promise<readonly number[]> {
  return rules.length === 0 ? listWatchedAfter(tx, { after, limit }) : listParcelsAfter(tx, { after, limit })
}

interface Judging extends WatchdogRules {
  readonly loads: FirstLoads
  readonly nowMs: number
  readonly mayTellUnchecked: boolean
}

/** A transaction judges parcels with about so many entries, and at least one, because pushes wait meanwhile. */
const ENTRIES_AT_ONCE = 4000

/** Returns the first parcels whose entries can be judged together. */
export function fittingEntries<Parcel>(parcels: readonly Parcel[], entriesOf: (parcel: Parcel) => number): readonly Parcel[] {
  let entries = 0
  const end = parcels.findIndex((parcel, at) => {
    entries += entriesOf(parcel)
    return at > 0 && entries > ENTRIES_AT_ONCE
  })
  return end === -1 ? parcels : parcels.slice(0, end)
}

interface Judged {
  readonly told: number
  /** The parcels about which to ask the carrier first. */
  readonly mustAsk: readonly number[]
  /** The parcels, from some one on, that were too many for now, and stay as they are. */
  readonly left: ReadonlySet<number>
}

/** Judges parcels, tells what is new, and saves when to look at them next. */
async function judgeAll(tx: WriteTx, parcelIds: readonly number[], judging: Judging): Promise<Judged> {
  if (parcelIds.length === 0) return { told: 0, mustAsk: [], left: new Set() }
  const held = new Map((await tx.holdParcels(parcelIds)).map((state) => [state.parcelId, state]))
  const taken = fittingEntries(parcelIds, (id) => held.get(id)?.entryCount ?? 0)
  const states = taken.flatMap((id) => held.get(id) ?? [])
  const living = states.map(({ parcelId }) => parcelId)
  removeWatched(
    tx,
    taken.filter((id) => !held.has(id)),
  )
  const breaches = Map.groupBy(await loadBreachesOf(tx, living), (row) => row.parcel_id)
  const watched = await loadWatched(tx, living, judging.rules)
  const verdicts: Saved[] = []
  const mustAsk: number[] = []
  for (const state of states) {
    const { parcelId } = state
    const of = watched.get(parcelId)
    if (of === undefined) continue
    const known = (breaches.get(parcelId) ?? []).map((row) => ({
      ...row,
      sinceMs: row.since_ms,
      toldAtMs: row.told_at_ms,
      endedAtMs: row.ended_at_ms,
    }))
    const verdict = judge(judging, of.parcel, known, { ...judging, checkedAtMs: answeredAtMs(state) })
    if (verdict.mustAsk) mustAsk.push(parcelId)
    saveDue(tx, parcelId, { ...verdict, askAtMs: verdict.mustAsk ? judging.nowMs : null })
    verdicts.push({ of: { ...of, parcelId }, verdict, known, nowMs: judging.nowMs })
  }
  const news = (await Promise.all(verdicts.map((one) => saveVerdict(tx, one)))).flat()
  if (news.length > 0) await tell(tx, news, judging.nowMs)
  return { told: news.length, mustAsk, left: new Set(parcelIds.slice(taken.length)) }
}

/** When the carrier last answered about a parcel; null: never, or not the last time it was asked. */
function answeredAtMs({ checkedAtMs, failures, stopped }: ParcelState): number | null {
  return failures === 0 && stopped !== 'unknown' ? checkedAtMs : null
}

interface Watched {
  readonly parcel: WatchedParcel
  readonly entries: readonly Entry[]
  readonly order: OrderContext
}

/** Loads what rules look at of parcels. */
async function loadWatched(tx: WriteTx, ids: readonly number[], rules: readonly WatchdogRule[]): Promise<ReadonlyMap<number, Watched>> {
  const hasTypes = rules.some(({ when }) => when.distributionType !== null)
  const [sightings, contexts, answers] = await Promise.all([
    tx.loadSightings(ids),
    loadContexts(tx, ids),
    hasTypes ? loadAnswersOf(tx, ids) : new Map<number, readonly KeptAnswer[]>(),
  ])
  return new Map(ids.map((id) => [id, watchedOf(sightings.get(id) ?? [], contexts.get(id) ?? NO_CONTEXT, answers.get(id) ?? [])]))
}

/** Makes what rules look at from what the store holds of a parcel. */
export function watchedOf(sightings: readonly KeptSighting[], order: OrderContext, answers: readonly KeptAnswer[]): Watched {
  const entries = deriveEntries(sightings)
  const looks = entries.map(({ status, detailedStatus, atMs, members }) => ({
    status,
    detailedStatus,
    atMs,
    learntAtMs: learntOf(members),
  }))
  const { distributionType } = presentParcel(entries, answers, [])
  return { parcel: { entries: looks, distributionType, labels: filterableLabels(order) }, entries, order }
}

function learntOf(members: readonly KeptSighting[]): number | null {
  const times = members.flatMap(({ learntAtMs }) => learntAtMs ?? [])
  return times.length === 0 ? null : Math.min(...times)
}

interface News {
  readonly breach: number
  readonly of: Watched & { readonly parcelId: number }
  readonly told: WatchdogTold
}

interface Saved {
  readonly of: Watched & { readonly parcelId: number }
  readonly verdict: Verdict
  readonly known: readonly KnownBreach[]
  readonly nowMs: number
}

/** Saves which breaches begin and end. A breach that was told before is not told again. */
async function saveVerdict(tx: WriteTx, { of, verdict, known, nowMs }: Saved): Promise<readonly News[]> {
  const { parcelId } = of
  for (const { breach } of verdict.recovered) endBreach(tx, breach.id, nowMs)
  const over = verdict.recovered.map(({ breach: { id, rule, sinceMs }, because }): News => {
    return { breach: id, of, told: { kind: 'recovered', rule, sinceMs, because, atMs: nowMs } }
  })
  const begun = await Promise.all(
    verdict.stalled.map(async ({ rule, sinceMs, checked }): Promise<News | null> => {
      const breach = await addBreach(tx, { parcelId, rule, sinceMs, checked, nowMs })
      return breach === null ? null : { breach, of, told: { kind: 'stalled', rule, sinceMs, checked, atMs: nowMs } }
    }),
  )
  const excess = known.length + verdict.stalled.length - BREACHES_MAX
  if (excess > 0) {
    const ended = known.filter(({ endedAtMs }) => endedAtMs !== null)
    removeBreaches(
      tx,
      ended.slice(0, excess).map(({ id }) => id),
    )
  }
  return [...over, ...begun.filter((one) => one !== null)]
}

/** Adds news to the feed, and queues it for the endpoints that ask for it. An endpoint that is catching up gets it from the feed. */
async function tell(tx: WriteTx, news: readonly News[], nowMs: number): Promise<void> {
  const asking = (await tx.listEndpoints()).filter(({ endpoint, queuedTo }) => queuedTo === null && asksForNews(endpoint))
  const parcels = asking.length === 0 ? null : await loadTold(tx, news, asking)
  await tx.tellWatchdogs(
    news.map(({ breach, of: { parcelId }, told }) => {
      const parcel = parcels?.get(parcelId)
      const takers = parcel === undefined ? [] : asking.filter(({ endpoint }) => takes(endpoint, eventOf(told.kind), filteredOf(parcel)))
      const body = parcel === undefined || takers.length === 0 ? null : encodeWatchdogEvent(told, parcel)
      return { kind: told.kind, parcelId, breach, body, endpointIds: takers.map(({ endpoint }) => endpoint.id), nowMs }
    }),
  )
}

/** Loads what endpoints are sent, and compare, of the parcels of news. */
async function loadTold(
  tx: WriteTx,
  news: readonly News[],
  asking: readonly Pick<EndpointState, 'endpoint'>[],
): Promise<ReadonlyMap<number, ToldParcel>> {
  const watched = new Map(news.map(({ of }) => [of.parcelId, of]))
  const ids = [...watched.keys()]
  const hasTypes = asking.some(({ endpoint }) => endpoint.filters.distributionType !== null)
  const tied = ids.filter((id) => instantsTie(watched.get(id)?.entries ?? []))
  const [names, answers, orders] = await Promise.all([
    loadNames(tx, ids),
    hasTypes ? loadAnswersOf(tx, ids) : new Map<number, readonly KeptAnswer[]>(),
    loadOrders(tx, tied),
  ])
  return new Map(
    [...watched].map(([parcelId, { entries: unordered, order }]) => {
      const entries = orderHistory(unordered, orders.get(parcelId) ?? [])
      const { distributionType } = presentParcel(entries, answers.get(parcelId) ?? [], [])
      return [parcelId, { parcelId, identifiers: names.get(parcelId) ?? [], order, entries, distributionType }]
    }),
  )
}
