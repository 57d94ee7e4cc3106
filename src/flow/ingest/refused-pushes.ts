import { addComebacks, addRefused, joinRefused, type RefusedPushes, refusedCauseOf } from '../../domain/ingest/refused-pushes.ts'
import type { Clock } from '../ports.ts'
import type { ReadSide } from '../read-side.ts'
import type { WriteSide } from '../write-side.ts'

/** Counts the pushes that were refused in the last day, over all replicas and restarts. */
export interface RefusedPushesKeeper {
  /** Counts pushes with this outcome, if the outcome is a refusal. */
  note(outcome: string, count: number): void
  /** Of the pushes that could not be stored, `first` were refused for the first time, and `again` came again and were stored. Call it after `note`. */
  noteComebacks(counts: { readonly first: number; readonly again: number }): void
  /** A trouble begins: the pushes that are refused from now on are counted by themselves. */
  troubleBegins(): void
  /** Saves what has changed since the last call. Rejects if the store fails; the next call then saves these changes too. */
  save(): Promise<void>
  /** What the last call of `save` could not save, as it is now; null: nothing. */
  unsaved(): Parameters<WriteSide['saveRefused']>[0] | null
  /** The spells of refused pushes, the newest first. */
  list(): Promise<readonly RefusedPushes[]>
}

export interface RefusedPushesPorts {
  readonly write: Pick<WriteSide, 'saveRefused'>
  readonly reads: Pick<ReadSide, 'listRefused'>
  /** A name for this process that no other process ever has. */
  readonly process: string
  readonly clock: Pick<Clock, 'now'>
}

export function createRefusedPushes({ write, reads, process, clock }: RefusedPushesPorts): RefusedPushesKeeper {
  let own: readonly RefusedPushes[] = []
  let saved = own
  let endedBeforeMs = Number.NEGATIVE_INFINITY
  let hasFailed = false
  const requestOf = (spells: readonly RefusedPushes[], nowMs = clock.now()) => ({
    spells: spells.map((spell) => ({ ...spell, process })),
    nowMs,
  })
  return {
    note(outcome, count) {
      const cause = refusedCauseOf(outcome)
      if (cause !== null) own = addRefused(own, { cause, count }, { atMs: clock.now(), endedBeforeMs })
    },
    noteComebacks({ first, again }) {
      if (first + again > 0) own = addComebacks(own, { pushes: first, again })
    },
    troubleBegins() {
      endedBeforeMs = clock.now()
    },
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
    unsaved: () => (hasFailed ? requestOf(own, Math.max(...own.map(({ untilMs }) => untilMs))) : null),
    async list() {
      const stored = await reads.listRefused()
      // Take the spells of this process from memory, because they may not be saved yet.
      return joinRefused([...stored.filter((spell) => spell.process !== process), ...own], clock.now())
    },
  }
}
