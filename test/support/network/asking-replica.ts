import { setTimeout as pause } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import type { ParcelView } from '../../../src/core/domain/history/parcel-state.ts'
import type { IncomingPoll, RecordOutcome } from '../../../src/core/domain/history/recording.ts'
import type { CarrierAnswer } from '../../../src/core/domain/polling/carrier-answer.ts'
import { createServe } from '../../../src/core/flow/history/serve.ts'
import { createSharedFlight } from '../../../src/core/flow/shared-flight.ts'
import { createAnswerCache, createChangeTable, createMemory } from '../../../src/core/runtime/answer-cache.ts'
import { openSharedCarrier, postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { openStore } from '../store/write-side.ts'

export interface AskingReplicaOptions {
  readonly nowMs: number
  readonly notFoundForMs: number
  readonly cacheBytes: number
  readonly fetchAll: (question: { readonly identifier: string; readonly language: string }) => Promise<CarrierAnswer>
  /** Called before the replica notes a language that was asked for. */
  readonly beforeNote?: () => Promise<void>
  /** Called with the stored view of a parcel, before the replica gets it. */
  readonly onRead?: (view: ParcelView | null) => Promise<void>
  /** Called when the replica waits for another replica's call to the carrier. */
  readonly onWait?: () => void
}

/** Opens a replica that answers apps from a shared database, and asks a carrier for what the database lacks. */
export async function openAskingReplica(place: string, options: AskingReplicaOptions) {
  const store = await openStore(options.nowMs, postgres, place)
  const { parcelVersion } = store.reads
  if (parcelVersion === undefined) throw new Error('others cannot share this store')
  const shared = openSharedCarrier(place)
  onTestFinished(() => shared.close())
  let passedMs = 0
  const serve = createServe(
    {
      carrier: { fetchAll: options.fetchAll },
      recorder: {
        submit: async (incoming: IncomingPoll): Promise<RecordOutcome> =>
          (await store.record(incoming)).outcomes[0] ?? { kind: 'duplicate' },
      },
      reads: {
        parcelVersion,
        async findParcel(identifier) {
          const view = await store.reads.findParcel(identifier)
          await options.onRead?.(view)
          return view
        },
      },
      write: {
        ...store.writes,
        async noteLanguageAsked(asked) {
          await options.beforeNote?.()
          await store.writes.noteLanguageAsked(asked)
        },
      },
      together: createSharedFlight({
        flights: shared.flights,
        pause(ms) {
          options.onWait?.()
          return pause(ms / 10)
        },
      }),
      cache: createAnswerCache({ bytesMax: options.cacheBytes, changes: createChangeTable() }),
      meter: { served() {} },
      notFound: createMemory<number>({ entriesMax: 100 }),
      pauses: createMemory({ entriesMax: 100 }),
      rests: createMemory({ entriesMax: 100 }),
      admitUnknown: async () => null,
      erasedAtMs: async () => null,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      clock: { now: store.now, monotonic: () => performance.now() + passedMs },
    },
    {
      languages: ['en', 'sv'],
      notFoundForMs: options.notFoundForMs,
      fetchUnknown: true,
      fetchMissingLanguage: true,
      refreshOlderThanMs: null,
    },
  )
  return {
    ...store,
    pass(ms: number) {
      passedMs += ms
      return store.pass(ms)
    },
    /** Resolves with `answered`, or with the reason why there is no answer. */
    ask: (identifier: string, language: string): Promise<unknown> =>
      serve.ask({ app: 'shop', identifier, language, kind: 'all' }).then(
        () => 'answered',
        (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
      ),
  }
}
