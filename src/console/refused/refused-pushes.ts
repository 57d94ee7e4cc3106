import { randomUUID } from 'node:crypto'
import type { Part, Reads, Writes } from '../../core/flow/relay-part.ts'
import type { WriteSide } from '../../core/flow/write-side.ts'
import { startRepeating } from '../../core/runtime/schedule.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { listRefused } from './refused-pushes.rows.ts'
import { addComebacks, addRefused, joinRefused, type RefusedPushes, refusedCauseOf, splitRefused } from './refused-pushes.rules.ts'

/** Counts the pushes that were refused in the last day, over all replicas and restarts. */
export type RefusedPushesKeeper = ReturnType<typeof createRefusedPushes>

interface RefusedPushesPorts extends Part<'clock', 'now'>, Reads<'session'>, Writes<'saveRefused'> {
  /** A name for this process that no other process ever has. */
  readonly process: string
}

/** A trouble is noticed at most this long after it has begun to keep pushes from being stored. */
const NOTICED_MS = 5000
/** The states of the counts of that time are kept at least this far apart. */
const APART_MS = 100

export function createRefusedPushes({ write, reads, process, clock }: RefusedPushesPorts) {
  let own: readonly RefusedPushes[] = []
  let saved = own
  let endedBeforeMs = Number.NEGATIVE_INFINITY
  let hasFailed = false
  /** What was counted before some of the last refusals for want of a store. */
  let earlier: readonly { readonly atMs: number; readonly spells: readonly RefusedPushes[] }[] = []
  const remember = (atMs: number) => {
    if (Math.abs(atMs - (earlier.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY)) < APART_MS) return
    earlier = [...earlier.filter((one) => Math.abs(atMs - one.atMs) <= NOTICED_MS), { atMs, spells: own }]
  }
  const requestOf = (spells: readonly RefusedPushes[], nowMs = clock.now()) => ({
    spells: spells.map((spell) => ({ ...spell, process })),
    nowMs,
  })
  return {
    /** Counts pushes with this outcome, if the outcome is a refusal. `atMs`: when the first of them was answered; by default now. */
    note(outcome: string, count: number, answeredAtMs: number = clock.now()) {
      const cause = refusedCauseOf(outcome)
      // What is told a moment late belongs to the trouble that has begun meanwhile.
      const atMs = Math.max(answeredAtMs, Math.min(endedBeforeMs, clock.now()))
      if (cause === 'not_stored') remember(atMs)
      if (cause !== null) own = addRefused(own, { cause, count }, { atMs, endedBeforeMs })
    },
    /** Of the pushes that could not be stored, `first` were refused for the first time, and `again` came again and were stored. Call it after `note`. */
    noteComebacks({ first, again }: { readonly first: number; readonly again: number }) {
      if (first + again > 0) own = addComebacks(own, { pushes: first, again })
    },
    /**
     * A trouble is noticed. The pushes that could not be stored since it began, after `afterMs`, are counted by themselves. Returns when the first
     * of them was refused, or now.
     */
    troubleBegins(afterMs: number) {
      const nowMs = clock.now()
      const first = earlier.find(({ atMs }) => atMs > afterMs && atMs <= nowMs && nowMs - atMs <= NOTICED_MS)
      if (first !== undefined) own = splitRefused(own, first.spells, first.atMs)
      endedBeforeMs = first?.atMs ?? nowMs
      return endedBeforeMs
    },
    /** Saves what has changed since the last call. Rejects if the store fails; the next call then saves these changes too. */
    async save() {
      const saving = own
      if (saving === saved) return
      try {
        await write.saveRefused(requestOf(saving))
        saved = saving
        hasFailed = false
      } catch (error) {
        hasFailed = true
        throw error
      }
    },
    // The same while nothing more is refused.
    /** What the last call of `save` could not save, as it is now; null: nothing. */
    unsaved: (): Parameters<WriteSide['saveRefused']>[0] | null =>
      hasFailed ? requestOf(own, Math.max(...own.map(({ untilMs }) => untilMs))) : null,
    /** The spells of refused pushes, the newest first. */
    async list(): Promise<readonly RefusedPushes[]> {
      const stored = await listRefused(reads.session)
      // Take the spells of this process from memory, because they may not be saved yet.
      return joinRefused([...stored.filter((spell) => spell.process !== process), ...own], clock.now())
    },
  }
}

/** How often the counts are saved, in milliseconds. If the relay is killed, it loses the counts since then. */
const SAVE_MS = 10_000

type RefusedParts = Pick<Relay, 'write' | 'reads' | 'clock' | 'unstored' | 'closing' | 'log'>

export function openRefusedPushes({ write, reads, clock, unstored, closing, log }: RefusedParts): RefusedPushesKeeper {
  const refused = createRefusedPushes({ write, reads, clock, process: randomUUID() })
  unstored.add(() => {
    const save = refused.unsaved()
    return save === null ? [] : [{ kind: 'refused', save }]
  })
  const save = () =>
    refused.save().catch((err: unknown) => log.debug({ err }, 'cannot save the counts of refused pushes now; the relay tries again'))
  const saving = startRepeating(save, SAVE_MS)
  closing.add(() => saving.stop())
  closing.add(save)
  return refused
}
