import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { onTestFinished } from 'vitest'
import { openWriteSide } from '../../../src/assembly/open-write-side.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { sqlite } from '../../../src/upkeep/sqlite-engine.ts'
import { strictLog } from '../history/observed.ts'
import { deliverOptions, recordOptions } from '../history/policy.ts'
import { type AnswerAt, openAnswersAt } from '../network/answers-at.ts'
import { temporaryFolder } from '../runner/temporary.ts'

interface Recorded {
  /** When the answers were given. A store is opened at this time, because the `Age` header and due times depend on it. */
  readonly nowMs: number
  readonly answers: readonly AnswerAt[]
}

/** The answers that an earlier version gave for the store that it wrote. */
export const recorded = readRecorded(JSON.parse(unpacked('answers.json.gz').toString()))

function unpacked(name: string): Buffer {
  return gunzipSync(readFileSync(new URL(`../../core/store/sqlite/written-before/${name}`, import.meta.url)))
}

function readRecorded(value: unknown): Recorded {
  if (isRecorded(value)) return value
  throw new Error('the file contains no recorded answers')
}

function isRecorded(value: unknown): value is Recorded {
  return typeof value === 'object' && value !== null && 'nowMs' in value && 'answers' in value && Array.isArray(value.answers)
}

/** Copies the store of the earlier version into a new folder. */
export function copyWrittenBefore(): { readonly folder: string; readonly path: string } {
  const folder = temporaryFolder()
  const path = join(folder, 'relay.db')
  writeFileSync(path, unpacked('relay.db.gz'), { mode: 0o600 })
  return { folder, path }
}

/** Opens a store with this version of the relay. */
export async function openWrittenBefore(place: string, engine: Engine = sqlite) {
  const { nowMs } = recorded
  const clock = { now: () => nowMs, monotonic: () => 0 }
  const writes = await openWriteSide({ sqlitePath: place, engine, record: recordOptions, deliver: deliverOptions }, clock, strictLog)
  const reads = engine.openReadStore(place)
  const answers = await openAnswersAt({ reads, writes, nowMs })
  let isOpen = true
  const close = async () => {
    if (!isOpen) return
    isOpen = false
    await answers.close()
    await reads.close()
    await writes.close()
  }
  onTestFinished(close)
  return { writes, get: answers.get, close }
}

/**
 * Repeats all requests in their order, because a request may start the polls of a stopped parcel. Returns the answers that differ. New members
 * in answers under /relay do not count.
 */
export async function differingFromBefore({
  get,
}: Pick<Awaited<ReturnType<typeof openWrittenBefore>>, 'get'>): Promise<readonly { readonly was: AnswerAt; readonly is: AnswerAt }[]> {
  const pairs = []
  for (const was of recorded.answers) pairs.push({ was, is: await get(was.path) })
  return pairs.filter(({ was, is }) => JSON.stringify(withoutSentence(was)) !== JSON.stringify(withoutSentence(withoutAdded(is, was))))
}

/** Removes the sentence that explains an error, because its words may be edited. */
function withoutSentence(answer: AnswerAt): AnswerAt {
  if (answer.headers['content-type'] !== 'application/problem+json') return answer
  const body = answer.body.replace(/"detail":"(?:[^"\\]|\\.)*"/, '"detail":""')
  return { ...answer, body, headers: { ...answer.headers, 'content-length': '' } }
}

/** Removes the members that the earlier answer lacks, if the path is under /relay. */
function withoutAdded(is: AnswerAt, was: AnswerAt): AnswerAt {
  if (!is.path.startsWith('/relay/') || is.headers['content-type'] !== was.headers['content-type'] || is.status !== was.status) return is
  const body = JSON.stringify(onlyAsIn(JSON.parse(is.body), JSON.parse(was.body)))
  return { ...is, body, headers: { ...is.headers, 'content-length': String(Buffer.byteLength(body)) } }
}

function onlyAsIn(is: unknown, was: unknown): unknown {
  if (Array.isArray(is) && Array.isArray(was)) return is.map((one, at) => onlyAsIn(one, was[at]))
  if (!isObject(is) || !isObject(was)) return is
  return Object.fromEntries(Object.entries(was).flatMap(([name, value]) => (name in is ? [[name, onlyAsIn(is[name], value)]] : [])))
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
