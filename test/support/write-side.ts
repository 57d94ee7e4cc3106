import { onTestFinished } from 'vitest'
import type { BatchReport, Incoming } from '../../src/domain/history/recording.ts'
import type { IncomingPush } from '../../src/domain/ingest/inbox.ts'
import { parsePush } from '../../src/domain/ingest/parse-push.ts'
import type { Engine } from '../../src/store/contract.ts'
import { sqlite } from '../../src/store/sqlite/sqlite-engine.ts'
import { openWriteSide } from '../../src/wiring/write-side.ts'
import { aPoll, type PollFields, type PushFields, pushBody } from './builders.ts'
import { newPlace } from './engines.ts'
import { deliverOptions, recordOptions } from './policy.ts'

/** The write side and the read side on a real store of their own, on a clock that the test moves. */
export async function openStore(startMs: number, engine: Engine = sqlite) {
  let nowMs = startMs
  let monotonicMs = 0
  const clock = { now: () => nowMs, monotonic: () => monotonicMs }
  const errors: object[] = []
  const path = await newPlace(engine)
  const writes = await openWriteSide({ sqlitePath: path, engine, record: recordOptions, deliver: deliverOptions }, clock, {
    error: (fields) => void errors.push(fields),
  })
  const reads = engine.openReadStore(path)
  onTestFinished(async () => {
    await reads.close()
    await writes.close()
  })
  const record = async (...batch: readonly Incoming[]): Promise<BatchReport> => await writes.record(batch)
  return {
    path,
    writes,
    reads,
    errors,
    record,
    push: (fields: PushFields = {}) => record(incomingPush(pushBody(fields), nowMs)),
    poll: (fields: PollFields = {}) => record({ kind: 'poll', observation: aPoll({ askedAtMs: nowMs, ...fields }), watch: true }),
    pass: (ms: number) => {
      nowMs += ms
      monotonicMs += Math.max(0, ms)
      return nowMs
    },
    /** Sets the wall clock, in which no time passes. */
    setClock: (ms: number) => {
      nowMs = ms
    },
    now: () => nowMs,
  }
}

export function incomingPush(body: Uint8Array, receivedAtMs: number): IncomingPush {
  return parsePush({ body, contentEncoding: null, receivedAtMs, keyIndex: 0 })
}
