import { onTestFinished } from 'vitest'
import { openWriteSide } from '../../../src/assembly/open-write-side.ts'
import { StorageFailure } from '../../../src/core/domain/errors.ts'
import type { BatchReport, Incoming } from '../../../src/core/domain/history/recording.ts'
import type { IncomingPush } from '../../../src/core/domain/ingest/inbox.ts'
import { parsePush } from '../../../src/core/domain/ingest/parse-push.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { sqlite } from '../../../src/upkeep/sqlite-engine.ts'
import { aPoll, type PollFields, type PushFields, pushBody } from '../history/builders.ts'
import { deliverOptions, recordOptions, retention } from '../history/policy.ts'
import { asInRelay, newPlace } from './engines.ts'

/** Opens a store with a clock that the test moves. `place`: an existing store; null: a new store is made. */
export async function openStore(startMs: number, engine: Engine = sqlite, place: string | null = null) {
  let nowMs = startMs
  let monotonicMs = 0
  const clock = { now: () => nowMs, monotonic: () => monotonicMs }
  const errors: object[] = []
  const path = place ?? (await newPlace(engine))
  const relay = asInRelay(engine, path)
  const writes = await openWriteSide(
    { sqlitePath: path, engine: relay.engine, record: recordOptions, deliver: deliverOptions, retention },
    clock,
    {
      error: (fields) => void errors.push(fields),
    },
  )
  const reads = relay.engine.openReadStore(path)
  onTestFinished(async () => {
    await reads.close()
    await writes.close()
    await relay.stop()
  })
  /** Tries again if this process was so slow that the server ended the transaction, which it does after two idle seconds. */
  const record = async (...batch: readonly Incoming[]): Promise<BatchReport> => {
    for (let tries = 1; ; tries++) {
      try {
        return await writes.record(batch)
      } catch (error) {
        if (!(error instanceof StorageFailure) || !error.message.includes('connection to the database was lost') || tries === 5) throw error
      }
    }
  }
  /** Tests must look up parcel ids: the engines assign different ones. */
  const parcelIdOf = async (identifier: string): Promise<number> => {
    const found = await reads.inspectParcel(identifier)
    if (found === null) throw new Error(`no parcel has the identifier ${identifier}`)
    return found.state.parcelId
  }
  return {
    path,
    writes,
    reads,
    errors,
    record,
    parcelIdOf,
    /** The inbox ids of the newest pushes, oldest first. */
    inboxIds: async () => (await reads.listInbox({ state: null, before: null, limit: 100 })).pushes.map(({ inboxId }) => inboxId).reverse(),
    push: (fields: PushFields = {}) => record(incomingPush(pushBody(fields), nowMs)),
    poll: (fields: PollFields = {}) => record({ kind: 'poll', observation: aPoll({ askedAtMs: nowMs, ...fields }), watch: true }),
    pass: (ms: number) => {
      nowMs += ms
      monotonicMs += Math.max(0, ms)
      return nowMs
    },
    /** Sets the wall clock. The monotonic clock stays. */
    setClock: (ms: number) => {
      nowMs = ms
    },
    now: () => nowMs,
  }
}

export function incomingPush(body: Uint8Array, receivedAtMs: number): IncomingPush {
  return parsePush({ body, contentEncoding: null, receivedAtMs, keyIndex: 0 })
}
