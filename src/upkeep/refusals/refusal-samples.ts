import type { Refusal, RefusalKeys, RefusalSamples, RefusedPush } from '../../core/domain/ingest/refused-spells.ts'
import type { NamedKey } from '../../core/domain/ingest/signature.ts'
import type { Part, Relay } from '../../core/flow/relay-part.ts'
import { explainRefusal } from './refusals.rules.ts'

interface RefusalSamplesPorts extends Pick<Relay, 'clock'>, Part<'log', 'warn'> {
  /** Lets all other waiting work run first. */
  readonly yieldToOthers: () => Promise<unknown>
  readonly explained: (refusal: Refusal) => void
}

const EVERY_MS = 1000
/** The next search waits this many times as long as the last one took. So searches take at most a fiftieth of the thread's time. */
const REST_FACTOR = 50
/** The longest time, in milliseconds, for which a search may hold up other work. */
const SLICE_MS = 1
/** For larger bodies only the header is examined. */
const BODY_BYTES_MAX = 256 * 1024
const REMOVED_KEYS_MAX = 4

export function createRefusalSamples({ clock, log, yieldToOthers, explained }: RefusalSamplesPorts, given: RefusalKeys): RefusalSamples {
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
    isDue: () => !isSearching && clock.monotonic() >= dueAtMs,
    take(refused) {
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
    replaceKeys(next) {
      const gone = keys.push.filter(({ key }) => !next.push.some((one) => one.key === key))
      const known = [...gone.map(({ key }) => ({ name: REMOVED, key })), ...removed]
      removed = known.filter(({ key }) => !next.push.some((one) => one.key === key)).slice(0, REMOVED_KEYS_MAX)
      keys = next
    },
  }
}

const REMOVED = 'a key that was taken out of webhook.sharedKeys'
