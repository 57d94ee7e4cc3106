import type { Audited } from '../../core/domain/admin/operator-action.ts'
import { type MarkedTombstone, markOf, tombstonesOf } from '../../core/domain/history/erased.ts'
import { ANY_LENGTH, searchFor } from '../../core/domain/names-in-text.ts'
import { audit } from '../../core/flow/audit.tx.ts'
import { addAction, forgetForms } from '../../core/store/admin/operations.ts'
import { lookUpIdentifiers } from '../../core/store/history/parcels.ts'
import { findTombstones, hasTombstones, listIdentifiers } from '../../core/store/history/tombstones.ts'
import { saveSetting } from '../../core/store/settings.ts'
import type { WriteStore, WriteTx } from '../../core/store/write-store.ts'
import { lastRestoreIn } from '../restore/restores.tx.ts'
import {
  addUnfinished,
  type ErasedParcels,
  eraseParcels,
  listUnfinished,
  removeUnfinished,
  type SearchedPage,
  searchMentions,
} from './erasure.rows.ts'
import { ERASURE_LINEAGE, type ErasedIdentifier, MARKS_MAX, UNCLEAR } from './erasure.rules.ts'

export interface ErasePorts {
  readonly store: WriteStore
  /** The key of the tombstones; null: it is not known. */
  readonly tombstoneKey: () => Uint8Array | null
  /** Called with the ids of erased parcels, to drop cached answers about them. */
  readonly changed: (parcelIds: readonly number[]) => void
  /** Returns a random text; see `ERASURE_LINEAGE`. */
  readonly newLineage: () => string
}

/** Thrown at the end of a dry run, to roll back its transaction. */
class DryRun extends Error {}

interface Erase extends Audited {
  readonly identifiers: readonly string[]
  readonly nowMs: number
}

interface EndErasures {
  readonly identifiers: readonly string[]
  readonly isLate: boolean
  readonly unreadable: number
}

export function createErase({ store, tombstoneKey, changed, newLineage }: ErasePorts) {
  const key = (): Uint8Array => {
    const known = tombstoneKey()
    if (known === null) throw new Error('an erasure needs a key for its tombstones')
    return known
  }

  /** The tombstones of erasures that must be repeated after a restore, by `MarkedTombstone.mark`; null: not read yet. */
  let missed: ReadonlyMap<string, MarkedTombstone> | null = null
  async function loadMissed(): Promise<ReadonlyMap<string, MarkedTombstone>> {
    missed ??= new Map((await store.missedTombstones()).tombstones.map((one) => [one.mark, one]))
    return missed
  }

  /** Runs `work` in a transaction. `announced` makes other replicas check their claimed deliveries and cached pages of the feed. */
  async function run<Result>(isDryRun: boolean, work: (tx: WriteTx) => Promise<Result>): Promise<Result> {
    if (!isDryRun) return await store.transaction(work, { announced: true })
    const shown: Result[] = []
    try {
      return await store.transaction(async (tx) => {
        shown.push(await work(tx))
        throw new DryRun('a dry run is rolled back')
      })
    } catch (error) {
      const result = shown.at(-1)
      if (result === undefined || !(error instanceof DryRun)) throw error
      return result
    }
  }

  return {
    /** Returns the encrypted key of the tombstones (null: no key exists), and whether tombstones use it. */
    tombstoneKey: () => store.transaction(async (tx) => ({ sealed: await tx.loadTombstoneKey(), isUsed: await hasTombstones(tx) })),
    /** Stores an encrypted key if the stored key is still `before` (null: no key). Returns the key that is stored afterwards. */
    keepTombstoneKey: ({ before, sealed }: { readonly before: string | null; readonly sealed: string }) =>
      store.transaction(async (tx) => {
        const stored = await tx.loadTombstoneKey()
        if (stored !== before) return stored ?? sealed
        await tx.saveTombstoneKey(sealed)
        return sealed
      }),
    /**
     * Erases the parcels of identifiers in one transaction, and stores tombstones, also of identifiers without a parcel. Notes all of their
     * identifiers as unfinished. The order in the audit trail gets the counts and the marks. `dryRun`: only reports what would be erased.
     */
    async eraseParcels({ dryRun, ...request }: Erase & { readonly dryRun: boolean }) {
      const erased = await run(dryRun, (tx) => erase(tx, key(), request))
      if (!dryRun) changed(erased.results.flatMap(({ parcelId }) => parcelId ?? []))
      return erased
    },
    /** Removes identifiers from a page of records that are not parcels. `dryRun`: only reports what would be removed. */
    searchMentions: ({
      dryRun,
      identifiers,
      ...page
    }: SearchedPage & { readonly identifiers: readonly string[]; readonly dryRun: boolean }) =>
      run(dryRun, (tx) => searchMentions(tx, { ...page, search: searchFor(new Set(identifiers)) })),
    /** Returns the identifiers that a parcel has, that were erased before, or whose erasure has not ended. */
    findErasable: ({ identifiers }: { readonly identifiers: readonly string[] }) =>
      store.transaction((tx) => findErasable(tx, tombstoneKey(), identifiers)),
    /** Lists the identifiers of erased parcels for which not all records were searched, perhaps because the relay was killed. */
    unfinishedErasures: () => store.transaction((tx) => listUnfinished(tx)),
    /**
     * Forgets unfinished identifiers, after all records were searched for them. `isLate`: some may have named parcels that had been erased before.
     * `unreadable`: how many records nobody could read.
     */
    endErasures: (request: EndErasures) => store.transaction((tx) => end(tx, request, newLineage)),
    /** Removes erased data from the files of the store, as far as the database engine can do this. */
    cleanStorage: () => store.cleanStorage(),
    /** After a restore: returns how many identifiers were erased since the backup, and the encrypted key of their tombstones. */
    async missedErasures() {
      const { sealedKey, tombstones } = await store.missedTombstones()
      return { sealedKey, count: tombstones.length }
    },
    /** After a restore: like `searchMentions`, for all identifiers that were erased since the backup. */
    async searchMissed(page: SearchedPage) {
      const missing = await loadMissed()
      const search = { lengths: ANY_LENGTH, isName: (value: string) => missing.has(markOf(key(), value)) }
      return await store.transaction((tx) => searchMentions(tx, { ...page, search }))
    },
    /**
     * After a restore: erases again the parcels that were erased since the backup. Each call looks at a page of identifiers above `after`.
     * `next` null: this was the last page. `names`: the identifiers of the erased parcels.
     */
    async repeatErasures({ after }: { readonly after: string }) {
      const missing = await loadMissed()
      return await store.transaction((tx) => repeat(tx, key(), { missing, after }))
    },
    /**
     * Stores the tombstones of the repeated erasures, and adds to the audit trail that they were repeated. After that, these erasures are not
     * repeated again. `identifiers`: how many were erased again.
     */
    async settleErasures({ nowMs, identifiers }: { readonly nowMs: number; readonly identifiers: number }) {
      const missing = await loadMissed()
      const marks = [...missing.keys()].slice(0, MARKS_MAX)
      await store.transaction(async (tx) => {
        tx.addTombstones([...missing.values()])
        const detail = { afterRestore: true, identifiers, marks }
        addAction(tx, { atMs: nowMs, by: RELAY, action: 'parcels.erased', target: null, detail })
      })
    },
  }
}

async function erase(tx: WriteTx, key: Uint8Array, { identifiers, nowMs, ...order }: Erase): Promise<ErasedParcels> {
  const values = [...new Set(identifiers)]
  const parcelOf = new Map((await tx.holdParcelsOf(values)).map(({ value, parcelId }) => [value, parcelId]))
  const held = [...new Set(parcelOf.values())].sort((a, b) => a - b)
  const erased = await eraseParcels(tx, held, values)
  // Waits for an order at another replica that names the same identifiers. It holds them also if they have no parcel.
  addUnfinished(tx, values)
  const buried = await findTombstones(tx, key, values)
  const alone = values.filter((value) => !parcelOf.has(value) && !buried.has(value))
  const gone = [...erased.names, ...alone.map((value) => ({ value, parcelId: NO_PARCEL }))].map((name) => ({ ...name, erasedAtMs: nowMs }))
  tx.addTombstones(tombstonesOf(key, gone))
  const namesOf = Map.groupBy(erased.names, ({ parcelId }) => parcelId)
  addUnfinished(
    tx,
    erased.names.map(({ value }) => value),
  )
  const results = identifiers.map((identifier): ErasedIdentifier => {
    const wasErased = buried.get(identifier)
    if (wasErased !== undefined && !parcelOf.has(identifier))
      return { identifier, outcome: 'erased_before', ...wasErased, marks: [markOf(key, identifier)] }
    const parcelId = parcelOf.get(identifier) ?? null
    const others = (namesOf.get(parcelId ?? NO_PARCEL) ?? []).flatMap(({ value }) => (value === identifier ? [] : [value]))
    const marks = [identifier, ...others].slice(0, MARKS_MAX).map((value) => markOf(key, value))
    return { identifier, outcome: 'erased', parcelId, erasedAtMs: nowMs, marks }
  })
  audit(tx, order, {
    identifiers: erased.names.length + alone.length,
    parcels: held.length,
    erasedBefore: results.filter(({ outcome }) => outcome === 'erased_before').length,
    marks: [...new Set(results.flatMap(({ marks }) => marks))].slice(0, MARKS_MAX),
    // What a form that is sent again shows.
    removed: erased.counts,
    endpoints: erased.endpoints.map(({ name }) => name),
  })
  // What was filled in, or an answer of a receiver, may name the parcel.
  forgetForms(tx)
  return { ...erased, results, store: { lineage: await loadLineage(tx), restoredAtMs: await lastRestoreIn(tx) } }
}

async function end(tx: WriteTx, { identifiers, isLate, unreadable }: EndErasures, newLineage: ErasePorts['newLineage']): Promise<void> {
  removeUnfinished(tx, identifiers)
  const before = await loadLineage(tx)
  const isNew = isLate || before === '' || before === UNCLEAR
  const after = unreadable > 0 ? UNCLEAR : isNew ? newLineage() : before
  if (after !== before) await saveSetting(tx, ERASURE_LINEAGE, new TextEncoder().encode(after))
}

async function loadLineage(tx: WriteTx): Promise<string> {
  return new TextDecoder().decode((await tx.loadSetting(ERASURE_LINEAGE)) ?? undefined)
}

async function findErasable(tx: WriteTx, key: Uint8Array | null, identifiers: readonly string[]): Promise<readonly string[]> {
  const living = (await lookUpIdentifiers(tx, identifiers)).map(({ value }) => value)
  const erased = key === null ? [] : (await findTombstones(tx, key, identifiers)).keys()
  const known = new Set([...living, ...erased, ...(await listUnfinished(tx))])
  return identifiers.filter((value) => known.has(value))
}

const RELAY = { kind: 'relay', name: 'relay', address: null } as const

/** The parcel id in the tombstone of an identifier that never had a parcel. */
const NO_PARCEL = 0

/** How many identifiers one transaction compares with the tombstones. */
const COMPARED = 500

async function repeat(
  tx: WriteTx,
  key: Uint8Array,
  { missing, after }: { readonly missing: ReadonlyMap<string, MarkedTombstone>; readonly after: string },
): Promise<{ readonly next: string | null; readonly names: readonly string[] }> {
  const page = await listIdentifiers(tx, { after, limit: COMPARED })
  const erasedAtMs = new Map<number, number>()
  for (const { value, parcelId } of page) {
    const tombstone = missing.get(markOf(key, value))
    if (tombstone !== undefined) erasedAtMs.set(parcelId, Math.max(erasedAtMs.get(parcelId) ?? 0, tombstone.erasedAtMs))
  }
  const held = await tx.holdParcels([...erasedAtMs.keys()].sort((a, b) => a - b))
  const { names } = await eraseParcels(
    tx,
    held.map(({ parcelId }) => parcelId),
    [],
  )
  addUnfinished(
    tx,
    names.map(({ value }) => value),
  )
  // The missing tombstones are stored after the last page. If the relay stops before that, the next start repeats the erasures from the beginning.
  const unmarked = names.filter(({ value }) => !missing.has(markOf(key, value)))
  const late = unmarked.map((name) => ({ ...name, erasedAtMs: erasedAtMs.get(name.parcelId) ?? 0 }))
  tx.addTombstones(tombstonesOf(key, late))
  const isLast = page.length < COMPARED
  return { next: isLast ? null : (page.at(-1)?.value ?? null), names: names.map(({ value }) => value) }
}
