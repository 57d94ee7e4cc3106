import {
  addComebacks,
  addRefused,
  explainRefusal,
  joinRefused,
  type Refusal,
  type RefusedPush,
  type RefusedPushes,
  refusedCauseOf,
  splitRefused,
} from '../../core/domain/ingest/refused-pushes.ts'
import type { NamedKey } from '../../core/domain/ingest/signature.ts'
import type { Part, Reads, Relay, Writes } from '../../core/flow/relay.ts'
import type { WriteSide } from '../../core/flow/write-side.ts'

interface RefusalSamplesPorts extends Pick<Relay, 'clock'>, Part<'log', 'warn'> {
  /** Lets all other waiting work run first. */
  readonly yieldToOthers: () => Promise<unknown>
  readonly explained: (refusal: Refusal) => void
}

interface RefusalKeys {
  readonly push: readonly NamedKey[]
  readonly others: readonly NamedKey[]
}

export type RefusalSamples = ReturnType<typeof createRefusalSamples>

const EVERY_MS = 1000
/** The next search waits this many times as long as the last one took. So searches take at most a fiftieth of the thread's time. */
const REST_FACTOR = 50
/** The longest time, in milliseconds, for which a search may hold up other work. */
const SLICE_MS = 1
/** For larger bodies only the header is examined. */
const BODY_BYTES_MAX = 256 * 1024
const REMOVED_KEYS_MAX = 4

export function createRefusalSamples({ clock, log, yieldToOthers, explained }: RefusalSamplesPorts, given: RefusalKeys) {
  let keys = given
  let removed: readonly NamedKey[] = []
  let dueAtMs = Number.NEGATIVE_INFINITY
  let isSearching = false

  async function search(refused: RefusedPush): Promise<void> {
    const steps = explainRefusal(refused, { keys: keys.push, otherKeys: [...removed, ...keys.others] }, clock.now())
    let spentMs = 0
    for (;;) {
      const fromMs = clock.monotonic()
      let step = steps.next()
      while (step.done !== true && clock.monotonic() - fromMs < SLICE_MS) step = steps.next()
      spentMs += clock.monotonic() - fromMs
      if (step.done === true) {
        dueAtMs = Math.max(dueAtMs, clock.monotonic() + spentMs * REST_FACTOR)
        explained(step.value)
        return
      }
      await yieldToOthers()
    }
  }

  return {
    /** Whether `take` would examine a push now. */
    isDue: () => !isSearching && clock.monotonic() >= dueAtMs,
    /** Explains a push if `isDue` returns true; otherwise does nothing. Copies the body, so the caller may release it at once. */
    take(refused: RefusedPush) {
      if (isSearching || clock.monotonic() < dueAtMs) return
      isSearching = true
      dueAtMs = clock.monotonic() + EVERY_MS
      const { body } = refused
      const copied = body === null || body.length > BODY_BYTES_MAX ? null : Uint8Array.from(body)
      void search({ ...refused, body: copied })
        .catch((err: unknown) => log.warn({ err }, 'a refused push could not be explained'))
        .finally(() => {
          isSearching = false
        })
    },
    /** Uses other keys from now on. Explanations still try the keys that were removed last. */
    replaceKeys(next: RefusalKeys) {
      const gone = keys.push.filter(({ key }) => !next.push.some((one) => one.key === key))
      const known = [...gone.map(({ key }) => ({ name: REMOVED, key })), ...removed]
      removed = known.filter(({ key }) => !next.push.some((one) => one.key === key)).slice(0, REMOVED_KEYS_MAX)
      keys = next
    },
  }
}

const REMOVED = 'a key that was taken out of webhook.sharedKeys'

/** Counts the pushes that were refused in the last day, over all replicas and restarts. */
export type RefusedPushesKeeper = ReturnType<typeof createRefusedPushes>

export interface RefusedPushesPorts extends Part<'clock', 'now'>, Reads<'listRefused'>, Writes<'saveRefused'> {
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
      const stored = await reads.listRefused()
      // Take the spells of this process from memory, because they may not be saved yet.
      return joinRefused([...stored.filter((spell) => spell.process !== process), ...own], clock.now())
    },
  }
}

/** An address whose pushes were refused because their signatures did not match. Times are epoch milliseconds. */
export interface RefusedSender {
  readonly address: string
  readonly count: number
  readonly firstAtMs: number
  readonly lastAtMs: number
}

/** An attacker may have any number of addresses, so only the addresses that were refused last are remembered. */
const SENDERS_MAX = 50

/** Remembers, until this process ends, some of the addresses that sent refused pushes. */
export function createRefusedSenders(clock: { now(): number }) {
  const senders = new Map<string, RefusedSender>()
  return {
    add(address: string) {
      const lastAtMs = clock.now()
      const { count, firstAtMs } = senders.get(address) ?? { count: 0, firstAtMs: lastAtMs }
      // Move the address to the end, because the map is in the order of the last refusals.
      senders.delete(address)
      senders.set(address, { address, count: count + 1, firstAtMs, lastAtMs })
      const [oldest] = senders.keys()
      if (senders.size > SENDERS_MAX && oldest !== undefined) senders.delete(oldest)
    },
    /** The address that was refused last comes first. */
    list: (): readonly RefusedSender[] => [...senders.values()].reverse(),
  }
}
