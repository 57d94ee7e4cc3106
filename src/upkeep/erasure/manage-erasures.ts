import type { WatchListError } from '../../console/parcels/parcel-commands.ts'
import type { Actor, OperatorAction } from '../../core/domain/admin/operator-action.ts'
import { createWatchLineReader, WATCH_LINES_MAX, type WatchListFormat } from '../../core/domain/admin/parcel-list.ts'
import { counted } from '../../core/domain/amounts.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { StorageState } from '../../core/domain/history/erased.ts'
import { readIdentifier } from '../../core/domain/identifiers.ts'
import type { Part, Writes } from '../../core/flow/relay-part.ts'
import type { ErasedParcels, SearchedMentions, SearchedPage } from './erasure.rows.ts'
import {
  addErased,
  type ErasedCounts,
  type ErasedIdentifier,
  type ErasureTrace,
  FIRST_MENTION,
  isOfPushes,
  type MentionPlace,
  type NamedEndpoint,
  NOTHING_ERASED,
  TRACED_MAX,
} from './erasure.rules.ts'

export interface ManageErasuresPorts
  extends Part<'clock', 'now'>,
    Part<'meter', 'erased'>,
    Writes<'findErasable' | 'eraseParcels' | 'searchMentions' | 'unfinishedErasures' | 'endErasures' | 'cleanStorage'> {
  /** Makes the key of the tombstones if there is none. */
  readonly key: { readonly ensure: () => Promise<void> }
  /** Lists the names of the backups that may hold the erased parcels; see `ManageBackups.mayHold`. */
  readonly listBackups: (trace: ErasureTrace | null) => Promise<{ readonly names: readonly string[]; readonly unreadable: string | null }>
  /** Lists the names of the old stores that restores and moves have left behind. */
  readonly listLeftStores: () => Promise<readonly string[]>
  /** Drops this process's memory of parcels: claimed deliveries and pages of the feed. */
  readonly forget: () => void
  readonly relayId: () => Promise<string>
}

interface ErasureReceipt extends Pick<ErasedIdentifier, 'identifier' | 'parcelId' | 'marks'> {
  readonly outcome: Exclude<ErasedIdentifier['outcome'], 'unknown'>
  readonly erasedAtMs: number
}

/** The result of an erasure, or of its dry run. */
export interface ErasureReport {
  readonly dryRun: boolean
  /** When the order was carried out, epoch milliseconds, who gave it, and the id of the relay (of the store, if several share one). */
  readonly atMs: number
  readonly by: Actor
  readonly relay: string
  /** What was erased now (not in a dry run) or before: evidence for whoever asked for it. Only the first `RECEIPTS_MAX` of a list. */
  readonly receipts: readonly ErasureReceipt[]
  readonly removed: ErasedCounts
  /** How many records stay as they are although they may name an identifier: they cannot be read, or have it as a part of a longer word. */
  readonly unreadable: number
  /** The endpoints that were sent something about the parcels. */
  readonly endpoints: readonly NamedEndpoint[]
  /** The names of the backups that may contain erased data. */
  readonly backups: readonly string[]
  /** Why the folder of backups could not be read, so that `backups` is empty; null: it was read, or there is none. */
  readonly backupsUnreadable: string | null
  /** When the store was last restored, epoch milliseconds; null: never. All backups from before that are in `backups`, whatever they hold. */
  readonly restoredAtMs: number | null
  /** The names of the old stores that restores and moves have left behind. They may contain erased data too. */
  readonly stores: readonly string[]
  readonly storage: StorageState
}

export interface ErasureListReport extends ErasureReport {
  readonly lines: number
  /** How many identifiers belong to parcels that were erased now, to parcels that had been erased before, and to no parcel. */
  readonly erased: number
  readonly erasedBefore: number
  readonly unknown: number
  readonly failed: number
  /** The first lines without a valid identifier or with an unknown one. Line numbers count from 1. */
  readonly errors: readonly WatchListError[]
}

export interface ErasureList {
  readonly format: WatchListFormat
  readonly column: string | null
  readonly dryRun: boolean
  readonly lines: AsyncIterable<string>
  readonly by: Actor
}

/** Lets operators erase parcels (CONTRACT, `DELETE /relay/parcels/{identifier}`). */
export type ManageErasures = ReturnType<typeof createManageErasures>

/** How many identifiers one transaction erases. */
const BATCH = 20
const ERRORS_SHOWN = 1000

const RECEIPTS_MAX = 5000

interface Found {
  readonly results: readonly ErasedIdentifier[]
  readonly counts: ErasedCounts
  readonly endpoints: readonly NamedEndpoint[]
  readonly unreadable: number
  readonly trace: ErasureTrace | null
  readonly restoredAtMs: number | null
}

export function createManageErasures(ports: ManageErasuresPorts) {
  const { write, key, meter, clock } = ports

  async function erase(identifiers: readonly string[], dryRun: boolean, by: Actor): Promise<Found> {
    const erasable = await findKnown(write, identifiers)
    const wanted = identifiers.filter((value) => erasable.has(value))
    if (wanted.length === 0) return { ...NOTHING_FOUND, results: identifiers.map(unknownOf) }
    await key.ensure()
    const action: OperatorAction = { atMs: clock.now(), by, action: 'parcels.erased', target: null, detail: {} }
    const erased = await eraseAll(ports, wanted, { dryRun, action: dryRun ? null : action })
    // What a kill has left unfinished is searched for too, because nobody else may know these identifiers any more.
    const left = dryRun ? [] : await write.unfinishedErasures()
    const names = [...new Set([...wanted, ...erased.names, ...left])]
    const searched = await searchRecords((page) => write.searchMentions({ ...page, identifiers: names, dryRun }))
    const known = new Set([...wanted, ...erased.names])
    const isLate = mayBeLate(
      left.some((value) => !known.has(value)),
      erased.results,
      searched,
    )
    if (!dryRun) await write.endErasures({ identifiers: names, isLate, unreadable: searched.unreadable })
    const resultOf = new Map(erased.results.map((result) => [result.identifier, result]))
    return {
      endpoints: erased.endpoints,
      results: identifiers.map((identifier) => resultOf.get(identifier) ?? unknownOf(identifier)),
      counts: addErased(erased.counts, searched.counts),
      unreadable: searched.unreadable,
      restoredAtMs: erased.store.restoredAtMs,
      trace: isLate || searched.unreadable > 0 ? null : traceOf(erased, searched.counts, known),
    }
  }

  async function reportOf({ results, counts, trace, ...found }: Found, dryRun: boolean, by: Actor): Promise<ErasureReport> {
    const atMs = clock.now()
    if (!dryRun) ports.forget()
    if (!dryRun) meter.erased(counts.parcels)
    const { names: backups, unreadable: backupsUnreadable } = await ports.listBackups(trace)
    return {
      dryRun,
      atMs,
      by,
      relay: await ports.relayId(),
      receipts: receiptsOf(results, dryRun, atMs),
      ...found,
      removed: counts,
      backups,
      backupsUnreadable,
      stores: await ports.listLeftStores(),
      storage: dryRun
        ? { state: 'pending', because: 'Nothing is erased yet.' }
        : unlessUnread(await write.cleanStorage(), found.unreadable),
    }
  }

  return {
    /**
     * Erases the parcel of an identifier, and removes its identifiers from other records. A call may be repeated. Throws
     * `bad_tracking_number`, `not_found` and `storage_unavailable`.
     */
    async forget(text: string, { dryRun }: { readonly dryRun: boolean }, by: Actor): Promise<ErasureReport> {
      const found = await erase([readIdentifier(text)], dryRun, by)
      if (found.results.every(({ outcome }) => outcome === 'unknown')) throw new AppError('not_found', 'No parcel has this identifier.')
      return await reportOf(found, dryRun, by)
    },
    /**
     * Erases the parcels of a list of identifiers. Reports lines with an invalid or unknown identifier, and erases the other lines. Throws
     * `bad_request` and `body_too_large`.
     */
    async forgetList({ format, column, dryRun, lines, by }: ErasureList): Promise<ErasureListReport> {
      const list = await readList(format, column, lines)
      const found = await erase(
        list.identifiers.map(({ identifier }) => identifier),
        dryRun,
        by,
      )
      const count = (wanted: ErasedIdentifier['outcome']) => found.results.filter(({ outcome }) => outcome === wanted).length
      const unknown = found.results.flatMap(({ outcome }, at) => {
        const line = list.identifiers[at]?.line
        return outcome === 'unknown' && line !== undefined ? [{ line, reason: 'holds an identifier that no parcel has' }] : []
      })
      return {
        ...(await reportOf(found, dryRun, by)),
        lines: list.lines,
        erased: count('erased'),
        erasedBefore: count('erased_before'),
        unknown: unknown.length,
        failed: list.bad.length,
        errors: [...list.bad, ...unknown].sort((a, b) => a.line - b.line).slice(0, ERRORS_SHOWN),
      }
    },
  }
}

const NOTHING_FOUND = { counts: NOTHING_ERASED, endpoints: [], unreadable: 0, trace: null, restoredAtMs: null }

function unknownOf(identifier: string): ErasedIdentifier {
  return { identifier, outcome: 'unknown', parcelId: null, erasedAtMs: null, marks: [] }
}

function receiptsOf(results: readonly ErasedIdentifier[], dryRun: boolean, atMs: number): readonly ErasureReceipt[] {
  const receipts = results.flatMap(({ outcome, erasedAtMs, ...result }) =>
    outcome === 'unknown' || (dryRun && outcome === 'erased') ? [] : [{ ...result, outcome, erasedAtMs: erasedAtMs ?? atMs }],
  )
  return receipts.slice(0, RECEIPTS_MAX)
}

const wasErasedBefore = ({ outcome }: ErasedIdentifier) => outcome === 'erased_before'

/** The files are not clean of what stays in records that nobody could read. */
function unlessUnread(storage: StorageState, unreadable: number): StorageState {
  if (unreadable === 0 || storage.state === 'pending') return storage
  const records = counted(unreadable, 'stored record', 'stored records')
  return {
    state: 'pending',
    because: `${records} cannot be read, or may name the parcel within a longer word. Look at the pushes that were not recorded.`,
  }
}

/** How many identifiers one transaction looks up. */
const LOOKED_UP = 500

/** Returns the identifiers that there is something to erase of. To erase the others would only damage records that use the same words. */
async function findKnown(
  write: Pick<ManageErasuresPorts['write'], 'findErasable' | 'searchMentions'>,
  identifiers: readonly string[],
): Promise<ReadonlySet<string>> {
  const known = new Set<string>()
  const lookUp = async (values: readonly string[]) => {
    for (let at = 0; at < values.length; at += LOOKED_UP)
      for (const value of await write.findErasable({ identifiers: values.slice(at, at + LOOKED_UP) })) known.add(value)
    return values.filter((value) => !known.has(value))
  }
  const others = await lookUp(identifiers)
  if (others.length === 0) return known
  const { found } = await searchRecords((page) => write.searchMentions({ ...page, identifiers: others, dryRun: true }), {
    onlyPushes: true,
  })
  for (const value of found) known.add(value)
  // Another order may have erased the pushes that name them meanwhile.
  await lookUp(others.filter((value) => !known.has(value)))
  return known
}

type ErasedAll = Omit<Found, 'unreadable' | 'trace' | 'restoredAtMs'> & Pick<ErasedParcels, 'store'> & { readonly names: readonly string[] }

/** Erases parcels in transactions of limited size. Each adds `action`, the operator's order, to the audit trail, with what it erased. */
async function eraseAll(
  { write, clock }: Pick<ManageErasuresPorts, 'write' | 'clock'>,
  identifiers: readonly string[],
  { dryRun, action }: { readonly dryRun: boolean; readonly action: OperatorAction | null },
): Promise<ErasedAll> {
  let counts = NOTHING_ERASED
  const endpoints = new Map<string, NamedEndpoint>()
  const results: ErasedIdentifier[] = []
  const names: string[] = []
  let store: ErasedAll['store'] = { lineage: '', restoredAtMs: null }
  for (let at = 0; at < identifiers.length; at += BATCH) {
    const part = identifiers.slice(at, at + BATCH)
    const order = action === null ? {} : { action }
    const erased = await write.eraseParcels({ identifiers: part, nowMs: clock.now(), dryRun, ...order })
    counts = addErased(counts, erased.counts)
    for (const endpoint of erased.endpoints) endpoints.set(endpoint.id, endpoint)
    results.push(...erased.results)
    names.push(...erased.names.map(({ value }) => value))
    store = erased.store
  }
  return { results, counts, endpoints: [...endpoints.values()], names, store }
}

/** Whether records may have named a parcel that had been erased before. Then the backups since hold what backups before it hold, too. */
function mayBeLate(hasLeft: boolean, results: readonly ErasedIdentifier[], { counts }: Pick<SearchedRecords, 'counts'>): boolean {
  return hasLeft || (counts.pushes + counts.mentions > 0 && results.some(wasErasedBefore))
}

/** Null: there are too many identifiers to compare. */
function traceOf(
  { results, store }: ErasedAll,
  { pushes, mentions }: SearchedRecords['counts'],
  names: ReadonlySet<string>,
): ErasureTrace | null {
  if (results.length > TRACED_MAX) return null
  const tombstones = results.flatMap(({ marks, parcelId, erasedAtMs }) => {
    const [mark] = marks
    return mark === undefined || erasedAtMs === null ? [] : [{ mark, parcelId: parcelId ?? 0, erasedAtMs }]
  })
  // A push that was not recorded may have named a parcel before it was known.
  const firstParcelId = pushes + mentions > 0 ? 0 : Math.min(...tombstones.map(({ parcelId }) => parcelId))
  return { ...store, tombstones, firstParcelId, names }
}

async function readList(format: WatchListFormat, column: string | null, lines: AsyncIterable<string>) {
  const read = createWatchLineReader(format, column)
  const identifiers: { readonly identifier: string; readonly line: number }[] = []
  const bad: WatchListError[] = []
  let count = 0
  for await (const text of lines) {
    count += 1
    if (count > WATCH_LINES_MAX)
      throw new AppError('body_too_large', `A list may have at most ${WATCH_LINES_MAX} lines. Nothing is erased.`)
    const line = read(text)
    if (line.kind === 'refused') throw new AppError('bad_request', `${line.reason} Nothing is erased.`)
    if (line.kind === 'identifier') identifiers.push({ identifier: line.identifier, line: count })
    if (line.kind === 'bad') bad.push({ line: count, reason: line.reason })
  }
  return { lines: count, identifiers, bad }
}

/** How many records one transaction searches. */
const SEARCHED = 200

interface SearchedRecords {
  readonly counts: Pick<ErasedCounts, 'pushes' | 'mentions'>
  readonly unreadable: number
  readonly found: ReadonlySet<string>
}

/** Searches all records that are not parcels but may name one, in transactions of limited size. `onlyPushes`: only the pushes without a parcel. */
export async function searchRecords(
  look: (page: SearchedPage) => Promise<SearchedMentions>,
  { onlyPushes = false } = {},
): Promise<SearchedRecords> {
  let [pushes, mentions, unreadable] = [0, 0, 0]
  const found = new Set<string>()
  for (let place: MentionPlace | null = FIRST_MENTION; place !== null && (!onlyPushes || isOfPushes(place.source)); ) {
    const searched = await look({ place, limit: SEARCHED })
    pushes += searched.pushes
    mentions += searched.mentions
    unreadable += searched.unreadable
    for (const value of searched.found) found.add(value)
    place = searched.next
  }
  return { counts: { pushes, mentions }, unreadable, found }
}

/** Ends the erasures that a kill has interrupted after their parcels were gone. Returns how many identifiers they had. */
export async function finishErasures(
  write: Pick<ManageErasuresPorts['write'], 'unfinishedErasures' | 'searchMentions' | 'endErasures'>,
): Promise<number> {
  const identifiers = await write.unfinishedErasures()
  if (identifiers.length === 0) return 0
  const { unreadable } = await searchRecords((page) => write.searchMentions({ ...page, identifiers, dryRun: false }))
  await write.endErasures({ identifiers, isLate: true, unreadable })
  return identifiers.length
}
