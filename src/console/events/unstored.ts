import type { OperatorAction } from '../../core/domain/admin/operator-action.ts'
import { encodeOperatorEvent, type OperatorEvent } from '../../core/domain/delivery/operator-event.ts'
import { isStoreUnavailable } from '../../core/domain/errors.ts'
import type { Log, PostOperator } from '../../core/flow/ports.ts'
import type { Part, Writes } from '../../core/flow/relay-part.ts'
import type { WriteSide } from '../../core/flow/write-side.ts'
import type { Down } from '../problems/trouble.ts'

/** What is to be written to the store, as plain data, so that it can also be kept in a file. */
export type Unwritten =
  | { readonly kind: 'trouble'; readonly begun: Parameters<WriteSide['beginTrouble']>[0] }
  | { readonly kind: 'event'; readonly event: OperatorEvent; readonly atMs: number; readonly action?: OperatorAction }
  /** `event`: what operators are told if the store cannot be written; null: nothing. */
  | { readonly kind: 'backup'; readonly end: Parameters<WriteSide['endBackup']>[0]; readonly event: OperatorEvent | null }
  | { readonly kind: 'refused'; readonly save: Parameters<WriteSide['saveRefused']>[0] }
  | { readonly kind: 'tallies'; readonly flush: Parameters<WriteSide['addTallies']>[0] }
  /** When the relay ran; it is not written to the store. The next run that is up makes a `down` of it (`isUp`). */
  | { readonly kind: 'alive'; readonly atMs: number }
  | { readonly kind: 'down'; readonly down: Down }

export interface Kept {
  readonly what: Unwritten
  /** Of the operator event. It is the same at each attempt to post the event, also after a restart. */
  readonly id: string
  readonly isPosted: boolean
}

/** A file that can be written while the store cannot. */
export interface UnstoredItems {
  read(): readonly Kept[]
  /** Leaves out the last items if not all fit. */
  write(items: readonly Kept[]): Promise<void>
}

export interface UnstoredPorts
  extends Part<'clock', 'now'>,
    Part<'log', 'debug' | 'info' | 'warn' | 'error'>,
    Writes<'beginTrouble' | 'recordOperatorEvent' | 'endBackup' | 'saveRefused' | 'addTallies' | 'noteDown'> {
  /** Null: the store is on a server, so that there is no folder of the store. */
  readonly file: UnstoredItems | null
  /** Called when an operator event may have been queued. */
  readonly wake: () => void
}

/** Keeps what could not be written to the store, and writes it as soon as it can be. */
export type Unstored = ReturnType<typeof createUnstored>

/** If more is kept, the oldest goes. */
const KEPT_MAX = 200
/** An event is posted without being stored after this many rounds in which the store failed, so not because of a lock of a moment. */
const ROUNDS_BEFORE_POST = 2
/** What fails for another reason than the store is tried this often. */
const TRIES_MAX = 60
/** What matters most comes first: if not everything fits into the file, the rest is left out. */
const ORDER: readonly Unwritten['kind'][] = ['refused', 'trouble', 'down', 'alive', 'event', 'backup', 'tallies']

interface Waiting extends Kept {
  /** How often it has failed for another reason than the store. */
  readonly failures: number
}

/** Begins with what the last run has left in the file. */
export function createUnstored({ write, file, clock, log, wake }: UnstoredPorts) {
  const lists: (() => readonly Unwritten[])[] = []
  const saving = openSaving(file, log)
  let kept: readonly Waiting[] = saving.left.map((one) => ({ ...one, failures: 0 }))
  let numbers = 0
  let failedRounds = 0
  /** What is being stored, and what is being posted. Neither begins while the other is under way, or operators would be told twice. */
  let writing: string | null = null
  let posting: string | null = null
  const inTurn = createTurns(log)
  const change = (id: string, to: Partial<Waiting> | null) => {
    kept = kept.flatMap((one) => (one.id !== id ? [one] : to === null ? [] : [{ ...one, ...to }]))
  }

  /** Writes what is kept in its order, until the store fails. Returns whether it did. */
  async function writeAll(): Promise<boolean> {
    for (const { id, what, failures } of kept.filter((one) => one.what.kind !== 'alive')) {
      if (id === posting) return false
      writing = id
      try {
        const isPosted = kept.some((one) => one.id === id && one.isPosted)
        await writeTo(write, what, isPosted)
        change(id, null)
        wake()
      } catch (err) {
        log.debug({ err, kind: what.kind }, 'something cannot be written to the store now; the relay tries again')
        if (isStoreUnavailable(err)) return true
        if (failures + 1 >= TRIES_MAX) log.error({ err, kind: what.kind }, 'something cannot be written to the store: it is forgotten')
        change(id, failures + 1 >= TRIES_MAX ? null : { failures: failures + 1 })
      } finally {
        writing = null
      }
    }
    return false
  }

  /** Saves what is kept at this moment: what the file still has after it was stored would be stored again by the next run. */
  const save = () => saving.save([...kept.map(keptOf), ...lists.flatMap((list) => list()).map((what) => keptOf({ what }))])

  async function postNext(post: PostOperator): Promise<void> {
    const next = kept.find(({ what, isPosted }) => !isPosted && eventOf(what) !== null)
    const told = next === undefined ? null : eventOf(next.what)
    if (next === undefined || told === null || posting !== null || writing === next.id) return
    posting = next.id
    try {
      if (!(await post(encodeOperatorEvent(told.event, told.atMs), next.id))) return
      // It may be stored as soon as `posting` is over.
      change(next.id, { isPosted: true })
    } finally {
      posting = null
    }
    log.info({ event: told.event.event }, 'operators were told of an event that cannot be stored yet')
    await postNext(post)
  }

  return {
    /** Writes to the store now, or keeps it. A trouble that is kept already has begun only once. Never rejects. */
    async write(what: Unwritten) {
      // Operators may know the beginning already: after a restart, the trouble is found once more.
      if (what.kind === 'trouble' && kept.some((one) => isAbout(one.what, what.begun.subject))) return
      const atMs = clock.now()
      kept = [...kept, { what, id: `${eventOf(what)?.event.event ?? what.kind}_${atMs}_${numbers++}`, isPosted: false, failures: 0 }]
      if (kept.length > KEPT_MAX) {
        log.warn({ kind: kept[0]?.what.kind }, 'too much cannot be written to the store: the oldest is forgotten')
        kept = kept.slice(1)
      }
      await inTurn(async () => {
        await writeAll()
        await save()
      })
    },
    /** The relay has started. Notes that it did not run since the last run was alive: a start that ends at the full disk changes nothing. Never rejects. */
    async isUp() {
      kept = kept.map((one) => ({ ...one, what: downUntil(clock.now(), one.what) }))
      await inTurn(async () => void (await writeAll()))
    },
    /** Adds a part that keeps by itself what it could not write. `list` returns that, so that it is saved to the file with the rest. */
    add: (list: () => readonly Unwritten[]) => void lists.push(list),
    /** When a trouble began that is not stored yet; null: there is none. */
    sinceMs: (subject: string): number | null => kept.flatMap(({ what }) => (isAbout(what, subject) ? [what.begun.nowMs] : []))[0] ?? null,
    /** Forgets a trouble that is not stored yet. */
    drop(subject: string) {
      kept = kept.filter(({ what }) => !isAbout(what, subject))
    },
    /** Tries again. Operators are told at once, by `post`, what still cannot be stored. Then saves to the file what is left. Never rejects. */
    async retry(post?: PostOperator) {
      await inTurn(async () => {
        failedRounds = (await writeAll()) ? failedRounds + 1 : 0
      })
      if (post !== undefined && failedRounds >= ROUNDS_BEFORE_POST)
        void postNext(post).catch((err: unknown) => log.debug({ err }, 'an event that cannot be stored cannot be posted either'))
      await inTurn(save)
    },
  }
}

/** Runs one work after the other. No call rejects. */
function createTurns(log: Pick<Log, 'error'>): (work: () => Promise<void>) => Promise<void> {
  let last: Promise<void> = Promise.resolve()
  return (work) => {
    last = last.then(work).catch((err: unknown) => log.error({ err }, 'what the store could not take cannot be kept'))
    return last
  }
}

function downUntil(startedMs: number, what: Unwritten): Unwritten {
  return what.kind === 'alive' ? { kind: 'down', down: { lastSeenMs: what.atMs, startedMs } } : what
}

function keptOf({ what, id = '', isPosted = false }: Pick<Kept, 'what'> & Partial<Kept>): Kept {
  return { what, id, isPosted }
}

type Trouble = Extract<Unwritten, { readonly kind: 'trouble' }>

function isAbout(what: Unwritten, subject: string): what is Trouble {
  return what.kind === 'trouble' && what.begun.subject === subject
}

/** The event for operators, with its time; null: it is no event. */
function eventOf(what: Unwritten): { readonly event: OperatorEvent; readonly atMs: number } | null {
  if (what.kind === 'trouble') return { event: what.begun.event, atMs: what.begun.nowMs }
  if (what.kind === 'event') return what
  return what.kind === 'backup' && what.event !== null ? { event: what.event, atMs: what.end.nowMs } : null
}

async function writeTo(write: UnstoredPorts['write'], what: Unwritten, isPosted: boolean): Promise<void> {
  switch (what.kind) {
    case 'trouble':
      return void (await write.beginTrouble({ ...what.begun, isPosted }))
    case 'event':
      return await write.recordOperatorEvent(what.event, what.atMs, {
        isPosted,
        ...(what.action === undefined ? {} : { action: what.action }),
      })
    case 'backup':
      return void (await write.endBackup({ ...what.end, isPosted }))
    case 'refused':
      return await write.saveRefused(what.save)
    case 'tallies':
      return await write.addTallies(what.flush)
    case 'down':
      return await write.noteDown(what.down)
    case 'alive':
      return
  }
}

/** Reads what the last run has saved, and saves what is kept. */
function openSaving(file: UnstoredItems | null, log: Pick<Log, 'debug'>) {
  const left = (file?.read() ?? []).map((one, at) => (eventOf(one.what) === null ? { ...one, id: `left_${at}` } : one))
  let saved = left.length === 0 ? '[]' : ''
  return {
    left,
    /** Never rejects: what cannot be saved is saved by a later call. */
    async save(all: readonly Kept[]): Promise<void> {
      const ordered = all.toSorted((a, b) => ORDER.indexOf(a.what.kind) - ORDER.indexOf(b.what.kind))
      const text = JSON.stringify(ordered)
      if (file === null || text === saved) return
      try {
        await file.write(ordered)
        saved = text
      } catch (err) {
        log.debug({ err }, 'what the store could not take cannot be saved beside it')
      }
    },
  }
}
