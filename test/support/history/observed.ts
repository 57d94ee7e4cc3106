import type { Incoming } from '../../../src/core/domain/history/recording.ts'
import { parsePush } from '../../../src/core/domain/ingest/parse-push.ts'
import type { Seen } from './observations.ts'

/** Converts an observation to the write side's input. */
export function incomingOf({ observation, body }: Seen, receivedAtMs: number): Incoming {
  if (observation.kind === 'poll') return { kind: 'poll', observation, watch: true }
  return parsePush({ body, contentEncoding: null, receivedAtMs, keyIndex: 0 })
}

export const strictLog = {
  error: (fields: object) => {
    throw new Error(`unexpected: ${JSON.stringify(fields, Object.getOwnPropertyNames(new Error()))}`)
  },
}
