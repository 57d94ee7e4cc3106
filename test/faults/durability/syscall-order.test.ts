import { join } from 'node:path'
import { expect } from 'vitest'
import { distinctPushes, pushPipelined } from '../../support/network/pipelined-pushes.ts'
import { onlyLong } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { dataOf, readTrace, STORE_AND_SOCKET_CALLS, type SystemCall, spawnTraced } from '../../support/store/strace.ts'

const PUSHES = 50
const OK = hex('HTTP/1.1 200')

const test = testWith('strace')

test('F2: every 200 for a new push comes after a sync that followed the write of its bytes', async () => {
  const { calls, bodies } = await traceOf()
  expect(violations(calls, bodies)).toEqual([])
})

onlyLong(test)('F2: this check fails for a store that does not sync each commit', async () => {
  const { calls, bodies } = await traceOf({ synchronous: 'NORMAL' })
  expect(violations(calls, bodies).length).toBeGreaterThan(PUSHES / 2)
})

/** Traces the system calls of a relay that gets one push after the other. */
async function traceOf(pragmas?: Readonly<Record<string, string>>) {
  const folder = temporaryFolder()
  const trace = join(folder, 'trace')
  const relay = await spawnTraced(folder, {
    strace: ['-y', '-xx', '-s', '70000', '-e', `trace=${STORE_AND_SOCKET_CALLS}`, '-o', trace],
    ...(pragmas === undefined ? {} : { pragmas }),
  })
  const bodies = distinctPushes(PUSHES, 'ordered')
  const statuses = await pushPipelined(relay.publicUrl, bodies, 1)
  await relay.kill()
  expect(statuses).toEqual(bodies.map(() => 200))
  return { calls: readTrace(trace), bodies }
}

/** Returns a line for each answer that came too early. */
function violations(calls: readonly SystemCall[], bodies: readonly Buffer[]): readonly string[] {
  const ofLog = calls.filter(({ path }) => path.endsWith('relay.db-wal'))
  const writes = ofLog.filter(({ name }) => name === 'pwrite64').map((call) => ({ ...call, data: dataOf(call.args) }))
  const syncs = ofLog.filter(({ name, result }) => (name === 'fsync' || name === 'fdatasync') && result === 0)
  const answers = calls.filter(({ args }) => args.includes(OK))
  if (answers.length !== bodies.length) return [`${answers.length} answers were seen for ${bodies.length} pushes`]
  return bodies.flatMap((body, at) => {
    const answeredAt = answers[at]?.enteredAt ?? 0
    const before = writes.filter(({ enteredAt }) => enteredAt < answeredAt)
    const written = before.find(({ data }) => data.includes(body))
    if (written === undefined) return [`push ${at} was answered before its bytes were written`]
    const lastWritten = Math.max(...before.map(({ leftAt }) => leftAt))
    const synced = syncs.some(({ enteredAt, leftAt }) => enteredAt > lastWritten && leftAt < answeredAt)
    return synced ? [] : [`push ${at} was answered before its bytes were synced`]
  })
}

function hex(text: string): string {
  return [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')
}
