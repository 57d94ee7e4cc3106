import { expect, test } from 'vitest'
import type { Incoming } from '../../../src/core/domain/history/recording.ts'
import { parsePush } from '../../../src/core/domain/ingest/parse-push.ts'
import { type CommitReport, createGroupCommit, queueInProcess } from '../../../src/core/runtime/group-commit.ts'

const push = (name: string): Incoming => parsePush({ body: Buffer.from(name), contentEncoding: null, receivedAtMs: 0, keyIndex: 0 })

/** Opens a recorder whose commits end when the test calls `end`. */
function openRecorder() {
  const batches: { readonly names: readonly string[]; readonly end: (error?: Error) => void }[] = []
  const record = (batch: readonly Incoming[]) =>
    new Promise<CommitReport>((resolve, reject) => {
      const names = batch.map((incoming) => (incoming.kind === 'push' ? Buffer.from(incoming.body).toString() : 'poll'))
      const end = (error?: Error) =>
        error === undefined
          ? resolve({
              outcomes: batch.map((_, parcelId) => ({ kind: 'recorded', parcelId, changed: true, newEntries: 1, queued: 0 })),
              durationMs: 1,
            })
          : reject(error)
      batches.push({ names, end })
    })
  return { batches, record }
}

function open(limits = { recorderMax: 6, waitingMax: 7, patienceMs: 1000 }, atOnce?: () => number) {
  let nowMs = 0
  const recorder = openRecorder()
  const told: string[] = []
  const timers: (() => void)[] = []
  const commit = createGroupCommit(
    {
      queue: queueInProcess(recorder.record, 3, atOnce),
      onCommitted: () => void told.push('committed'),
      onFailed: () => void told.push('failed'),
      monotonic: () => nowMs,
      later: (work) => void timers.push(work),
    },
    limits,
  )
  const pass = (ms: number) => {
    nowMs += ms
  }
  const second = async () => {
    for (const work of timers.splice(0)) work()
    await settled()
  }
  return { ...recorder, commit, told, pass, second, timers }
}

/** Waits until all promises that do not wait for a commit have resolved. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('observations that arrive during a commit form the next batch, up to a limit', async () => {
  const { commit, batches } = open()
  const first = commit.submit(push('a'))
  await settled()
  expect(batches.map(({ names }) => names)).toEqual([['a']])
  const all = [first, ...['b', 'c', 'd', 'e'].map((name) => commit.submit(push(name)))]
  batches[0]?.end()
  await settled()
  batches[1]?.end()
  await settled()
  batches[2]?.end()
  await Promise.all(all)
  expect(batches.map(({ names }) => names)).toEqual([['a'], ['b', 'c', 'd'], ['e']])
})

test('as many batches run at once as the current limit allows', async () => {
  let atOnce = 2
  const { commit, batches } = open(undefined, () => atOnce)
  const submitted: Promise<unknown>[] = []
  const submitOne = async (name: string) => {
    submitted.push(commit.submit(push(name)))
    await settled()
    return batches.length
  }
  expect([await submitOne('a'), await submitOne('b'), await submitOne('c')]).toEqual([1, 2, 2])
  batches[0]?.end()
  await settled()
  expect(batches.map(({ names }) => names)).toEqual([['a'], ['b'], ['c']])
  atOnce = 1
  batches[1]?.end()
  await settled()
  expect(await submitOne('d')).toBe(3)
  batches[2]?.end()
  await settled()
  batches[3]?.end()
  await Promise.all(submitted)
})

test('no sender is answered before the commit has ended and was reported', async () => {
  const { commit, batches, told } = open()
  const submitted = commit.submit(push('a')).then(() => void told.push('sender'))
  await settled()
  expect(told).toEqual([])
  batches[0]?.end()
  await submitted
  expect(told).toEqual(['committed', 'sender'])
})

test('a failing commit is a 503 for all observations of its batch, and for no others', async () => {
  const { commit, batches, told } = open()
  const submit = (name: string) =>
    commit.submit(push(name)).then(
      ({ kind }) => kind,
      (error: { code: string }) => error.code,
    )
  const a = submit('a')
  await settled()
  const [b, c] = ['b', 'c'].map(submit)
  batches[0]?.end()
  await settled()
  batches[1]?.end(new Error('disk full'))
  const late = commit.submit(push('d')).then(({ kind }) => kind)
  await settled()
  batches[2]?.end()
  expect([await a, await b, await c, await late]).toEqual(['recorded', 'storage_unavailable', 'storage_unavailable', 'recorded'])
  expect(told).toEqual(['committed', 'failed', 'committed'])
})

test('X7: observations beyond the limit of the queue are refused at once, with a Retry-After', async () => {
  const { commit, batches } = open()
  const waiting = Array.from({ length: 7 }, (_, at) => commit.submit(push(String(at))))
  await settled()
  expect(commit.pending()).toBe(7)
  await expect(commit.submit(push('one too many'))).rejects.toMatchObject({ code: 'storage_unavailable', retryAfterMs: 1000 })
  for (let at = 0; at < 3; at++) {
    batches[at]?.end()
    await settled()
  }
  expect(await Promise.all(waiting)).toHaveLength(7)
})

test('S9: on a slow disk an observation that has waited too long is refused', async () => {
  const { commit, batches, pass } = open()
  const first = commit.submit(push('a'))
  await settled()
  const codeOf = (name: string) =>
    commit.submit(push(name)).catch((error: { code: string; retryAfterMs: number }) => [error.code, error.retryAfterMs])
  const early = codeOf('b')
  pass(1)
  const late = codeOf('c')
  pass(1000)
  batches[0]?.end()
  expect(await early).toEqual(['storage_unavailable', 1000])
  // The next batch still records the refused push.
  expect(batches[1]?.names).toEqual(['b', 'c'])
  batches[1]?.end()
  expect([await first, await late]).toMatchObject([{ kind: 'recorded' }, { kind: 'recorded' }])
  await commit.drained()
})

test('the recorder is drained when nothing waits and no commit runs', async () => {
  const { commit, batches } = open()
  const submitted = commit.submit(push('a'))
  let drained = false
  const drain = commit.drained().then(() => {
    drained = true
  })
  await settled()
  expect(drained).toBe(false)
  batches[0]?.end()
  await Promise.all([submitted, drain])
})

test('the last failed batch is retried once a second until a commit works', async () => {
  const { commit, batches, told, second, timers } = open()
  const refused = (name: string) => expect(commit.submit(push(name))).rejects.toMatchObject({ code: 'storage_unavailable' })
  for (const [at, name] of ['a', 'b'].entries()) {
    const sent = refused(name)
    await settled()
    batches[at]?.end(new Error('a damaged page'))
    await sent
  }
  expect(timers).toHaveLength(1)
  for (const at of [2, 3]) {
    await second()
    expect(batches[at]?.names).toEqual(['b'])
    batches[at]?.end(new Error('a damaged page'))
    await settled()
  }
  // A series of equal failures is reported only once.
  expect(told).toEqual(['failed'])
  await second()
  batches[4]?.end()
  await settled()
  expect([told, timers, batches.length]).toEqual([['failed', 'committed'], [], 5])
})

test('a refused batch is not retried after another commit has worked, or at a stop', async () => {
  const { commit, batches, second } = open()
  const codeOf = (name: string) => commit.submit(push(name)).catch((error: { code: string }) => error.code)
  const sent = codeOf('a')
  await settled()
  batches[0]?.end(new Error('disk full'))
  expect(await sent).toBe('storage_unavailable')
  const other = commit.submit(push('b'))
  await settled()
  batches[1]?.end()
  await other
  await second()
  const last = codeOf('c')
  await settled()
  batches[2]?.end(new Error('disk full'))
  expect(await last).toBe('storage_unavailable')
  await commit.drained()
  await second()
  expect(batches.map(({ names }) => names)).toEqual([['a'], ['b'], ['c']])
})
