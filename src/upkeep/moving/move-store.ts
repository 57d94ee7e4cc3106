import { digestOfRows, keyTextOf, type MoveProgress, type MoveStep, type StoredRow } from './store-move.rules.ts'
import type { CopiedTable, MoveSource, MoveTarget } from './store-moves.rows.ts'

/** A page has at most this many rows, and fewer if the rows are large. */
const ROWS_MAX = 500
const BYTES_PER_PAGE = 4 * 1024 * 1024
/** This many changes of a table are copied at a time. After each batch, the source waits for other writers and deletes the keys of the batch. */
const CHANGES_MAX = 2000
/** While the switch copies the last changes, nobody can write. It should take no longer than this. */
const TAIL_MS = 1000
/** The limits of `State.tail`, which is an estimate of how many changes the move can copy in `TAIL_MS`. */
const TAIL_MIN = 1000
const TAIL_MAX = 20_000
/** When there are this many `suspects`, they are compared again, to limit the memory that they take. */
const SUSPECTS_MAX = 20_000
/** If a page of the copy has this many more rows than the source's page, both pages are read again: the source may just have deleted rows. */
const SURPLUS_MAX = 1000
/** If a page of the copy still has too many rows after this many tries, something else has written to the copy, and the move fails. */
const SURPLUS_TRIES = 20
/** If too many changes for the switch are left after this many rounds, other writers have to wait while the move copies. */
const ROUNDS_MAX = 3
/** One call of `advance` works for about this long. */
const TURN_MS = 200

export interface StoreMovePorts {
  readonly source: MoveSource
  readonly target: MoveTarget
  readonly monotonic: () => number
}

/** Copies a store while others write to it. */
export type StoreMove = ReturnType<typeof createStoreMove>

interface State extends StoreMovePorts {
  /** Rows that must be compared again, by table and key: they differed, or have changed since they were compared. */
  readonly suspects: Map<string, { readonly table: CopiedTable; readonly key: StoredRow }>
  compareAt: number
  readonly counted: { copied: number; total: number }
  isVerifying: boolean
  /** Whether others write faster than the move copies. If so, others have to wait while the move copies. */
  isOutrun: boolean
  /** The switch may begin when at most this many changes are left. */
  tail: number
}

export function createStoreMove(ports: StoreMovePorts) {
  const state: State = {
    ...ports,
    suspects: new Map(),
    compareAt: SUSPECTS_MAX,
    counted: { copied: 0, total: 0 },
    isVerifying: false,
    isOutrun: false,
    tail: TAIL_MIN,
  }
  const steps = work(state)
  const turn = async () => {
    const untilMs = ports.monotonic() + TURN_MS
    for (;;) {
      const { value } = await steps.next()
      if (value.step === 'waiting' || ports.monotonic() >= untilMs) return value
    }
  }
  return {
    /** Works for a moment. At step `waiting` the switch may begin. Until the switch, call `advance` again and again, or changes pile up. */
    advance: async (): Promise<MoveProgress> => (state.isOutrun ? await state.source.alone(turn) : await turn()),
    /** Asks all others that use the store to stop writing. */
    pause: () => state.source.pause(),
    /**
     * Copies the rest while nobody can write, checks the copy, and marks the source as moved. If anything differs it rejects, and the source
     * stays in use.
     */
    async switchOver(job: { readonly jobId: number; readonly nowMs: number }) {
      const { source, target, suspects, counted } = state
      await source.seal(async () => {
        for (const table of source.tables) while ((await copyChanges(state, table, CHANGES_MAX)) > 0);
        await toTheEnd(compareSuspects(state))
        if (suspects.size > 0) throw new Error(`the copy differs in ${suspects.size} rows, the first in ${firstOf(suspects)}`)
        await target.complete(await source.numbers(), { ...job, done: counted.copied })
      }, job.nowMs)
      // If this fails, the relay that opens the new store releases it.
      await target.release().catch(() => undefined)
    },
  }
}

/** Does all steps before the switch, and yields the progress after each batch. It never ends, because the source keeps changing. */
async function* work(state: State): AsyncGenerator<MoveProgress, never> {
  const { source, suspects, counted } = state
  const pages = createPageSizes()
  await source.begin()
  for (const table of source.tables) {
    counted.total += await source.count(table)
    yield progress('copying', 0, 0)
  }
  for (const table of source.tables) yield* copyTable(state, table, pages)
  yield* catchUp(state)
  state.isOutrun = false
  state.isVerifying = true
  const verified = { rows: 0 }
  for (const table of source.tables) yield* verifyTable(state, table, pages, verified)
  for (let round = 1, isPrepared = false; ; round++) {
    yield* catchUp(state)
    yield* compareSuspects(state)
    if (!isPrepared) await source.prepareSwitch()
    isPrepared = true
    const left = suspects.size + (await source.countChanges())
    // The source also changes while rows are compared, so too many changes may be left after every round.
    state.isOutrun ||= left > state.tail && round > ROUNDS_MAX
    yield { step: left <= state.tail ? 'waiting' : 'catching_up', done: 0, total: left }
  }
}

async function* copyTable({ source, target, counted }: State, table: CopiedTable, pages: PageSizes): AsyncGenerator<MoveProgress> {
  let after: StoredRow | null = null
  for (;;) {
    const rows: readonly StoredRow[] = await source.page(table, { after, upTo: null, limit: pages.next(table) })
    const last = rows.at(-1)
    if (last === undefined) return
    await target.replace(table, [], rows)
    after = keyOfRow(table, last)
    pages.saw(table, rows)
    counted.copied += rows.length
    yield progress('copying', counted.copied, counted.total)
  }
}

/** Copies changes in rounds, until at most `state.tail` are left. */
async function* catchUp(state: State): AsyncGenerator<MoveProgress> {
  const { source, monotonic } = state
  for (let before = await source.countChanges(), left = Number.POSITIVE_INFINITY; left > state.tail; before = left) {
    const beganMs = monotonic()
    yield* copyAllChanges(state, before)
    left = await source.countChanges()
    const inTime = (before / Math.max(1, monotonic() - beganMs)) * TAIL_MS
    state.tail = Math.min(TAIL_MAX, Math.max(TAIL_MIN, inTime))
    state.isOutrun ||= left > state.tail && left > before / 2
  }
}

/** Copies at least one batch of changes of each table, and more batches while fewer than `total` changes are copied. */
async function* copyAllChanges(state: State, total: number): AsyncGenerator<MoveProgress> {
  let done = 0
  for (const table of state.source.tables) {
    // While others wait, each step must be short.
    const limit = state.isOutrun ? ROWS_MAX : CHANGES_MAX
    let copied = 0
    do {
      copied = await copyChanges(state, table, limit)
      done += copied
      if (copied > 0) yield progress('catching_up', done, total)
      if (state.suspects.size >= state.compareAt) yield* compareSuspects(state)
    } while (copied === limit && done < total)
  }
}

/** Returns the number of copied changes. */
async function copyChanges({ source, target, suspects, isVerifying }: State, table: CopiedTable, limit: number): Promise<number> {
  const { marks, keys } = await source.changes(table, limit)
  if (marks.length === 0) return 0
  const changed = new Map(keys.map((key) => [keyTextOf(key), key]))
  for (const some of inParts([...changed.values()])) await target.replace(table, some, await source.find(table, some))
  await source.forget(table, marks)
  if (isVerifying) for (const [text, key] of changed) suspects.set(`${table.name} ${text}`, { table, key })
  return marks.length
}

/** Compares a table in both stores, page by page. Rows that differ may be changing just now, so they are compared again later. */
async function* verifyTable(state: State, table: CopiedTable, pages: PageSizes, verified: { rows: number }): AsyncGenerator<MoveProgress> {
  const { source, target, suspects, counted } = state
  const soFar = () => progress('verifying', verified.rows, counted.total)
  let after: StoredRow | null = null
  for (let isLast = false, tries = 1; !isLast; ) {
    const limit = pages.next(table)
    const rows: readonly StoredRow[] = await source.page(table, { after, upTo: null, limit })
    const last = rows.at(-1)
    const upTo: StoredRow | null = last === undefined || rows.length < limit ? null : keyOfRow(table, last)
    const copies = await target.page(table, { after, upTo, limit: rows.length + SURPLUS_MAX })
    const isFull = copies.length === rows.length + SURPLUS_MAX
    if (isFull && tries === SURPLUS_TRIES) throw new Error(`the copy has rows in ${table.name} that the move did not copy`)
    if (!isFull) {
      for (const key of differing(table, rows, copies)) suspects.set(`${table.name} ${keyTextOf(key)}`, { table, key })
      pages.saw(table, rows)
      verified.rows += rows.length
      after = upTo
      isLast = upTo === null
    }
    tries = isFull ? tries + 1 : 1
    if (isFull || suspects.size >= state.compareAt) {
      yield* showing(catchUp(state), soFar)
      yield* showing(compareSuspects(state), soFar)
      state.isOutrun = false
    }
    yield soFar()
  }
}

/** Compares the suspects again, and keeps those that still differ. */
async function* compareSuspects(state: State): AsyncGenerator<MoveProgress> {
  const { source, target, suspects } = state
  const total = suspects.size
  let done = 0
  for (const [table, listed] of Map.groupBy(suspects.values(), (suspect) => suspect.table)) {
    for (const keys of inParts(listed.map(({ key }) => key))) {
      const differ = new Set(differing(table, await source.find(table, keys), await target.find(table, keys)).map(keyTextOf))
      for (const key of keys) if (!differ.has(keyTextOf(key))) suspects.delete(`${table.name} ${keyTextOf(key)}`)
      done += keys.length
      yield progress('catching_up', done, total)
    }
  }
  // Suspects that still differ must not be compared again after every page.
  state.compareAt = Math.max(SUSPECTS_MAX, 2 * suspects.size)
}

/** Runs `steps`, and yields `shown()` in place of their own progress. */
async function* showing(steps: AsyncGenerator<unknown>, shown: () => MoveProgress): AsyncGenerator<MoveProgress> {
  while (!(await steps.next()).done) yield shown()
}

async function toTheEnd(steps: AsyncGenerator<unknown>): Promise<void> {
  while (!(await steps.next()).done);
}

function inParts(keys: readonly StoredRow[]): readonly (readonly StoredRow[])[] {
  return Array.from({ length: Math.ceil(keys.length / ROWS_MAX) }, (_, nth) => keys.slice(nth * ROWS_MAX, (nth + 1) * ROWS_MAX))
}

/** Returns the keys of rows that differ, or that only one store has. */
function differing(table: CopiedTable, rows: readonly StoredRow[], copies: readonly StoredRow[]): readonly StoredRow[] {
  if (digestOfRows(rows) === digestOfRows(copies)) return []
  const named = (all: readonly StoredRow[]) => new Map(all.map((row) => [keyTextOf(keyOfRow(table, row)), row]))
  const [own, copied] = [named(rows), named(copies)]
  const isSame = (text: string) => {
    const [one, other] = [own.get(text), copied.get(text)]
    return one !== undefined && other !== undefined && digestOfRows([one]) === digestOfRows([other])
  }
  return [...new Map([...own, ...copied])].filter(([text]) => !isSame(text)).map(([, row]) => keyOfRow(table, row))
}

function keyOfRow({ keyLength }: CopiedTable, row: StoredRow): StoredRow {
  return row.slice(0, keyLength)
}

function firstOf(suspects: State['suspects']): string {
  const [first] = suspects.values()
  return first?.table.name ?? ''
}

/** `done` may exceed the `total` that was counted at the start, because others add rows while the move copies. */
function progress(step: MoveStep, done: number, total: number): MoveProgress {
  return { step, done, total: Math.max(done, total) }
}

type PageSizes = ReturnType<typeof createPageSizes>

/** Chooses the number of rows of a page by the average row size of the previous page, so that a page has at most about `BYTES_PER_PAGE`. */
function createPageSizes() {
  const sizes = new Map<string, number>()
  return {
    next: ({ name }: CopiedTable) => sizes.get(name) ?? Math.ceil(ROWS_MAX / 10),
    saw({ name }: CopiedTable, rows: readonly StoredRow[]) {
      if (rows.length === 0) return
      const bytes = rows.reduce((sum, row) => sum + sizeOf(row), 0) / rows.length
      sizes.set(name, Math.min(ROWS_MAX, Math.max(1, Math.floor(BYTES_PER_PAGE / bytes))))
    },
  }
}

function sizeOf(row: StoredRow): number {
  return row.reduce<number>((sum, cell) => sum + (cell === null || typeof cell === 'number' ? 8 : cell.length), 8)
}
