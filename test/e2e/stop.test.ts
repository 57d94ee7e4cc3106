import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { distinctPushes, startLoad } from '../support/network/push-load.ts'
import { startSlowPush } from '../support/network/slow-request.ts'
import { writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { byForm, onlyLong } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { storedBodies } from '../support/store/stored-rows.ts'

const STOPPING = 'stopping: finishing what is in flight'

function configIn(folder: string, shutdownTimeout = '10s'): string {
  return writeConfig(folder, NO_CARRIER, { log: { level: 'info' }, shutdownTimeout })
}

/** Tells whether a relay accepts connections at this URL, whatever it answers. */
async function takesConnections(url: string): Promise<boolean> {
  return await fetch(url, { headers: { connection: 'close' } }).then(
    () => true,
    () => false,
  )
}

test('X1: on SIGTERM every push that has begun is answered, none is lost, and the exit code is 0', async () => {
  const folder = temporaryFolder()
  const pushes = distinctPushes(10)
  const acknowledged: string[] = []
  for (const answeredBefore of byForm([170], [50, 170, 310])) {
    await using relay = await runRelay(configIn(folder))
    const load = startLoad(relay.publicUrl, 32, pushes.next, { restMs: 0 })
    await load.untilAnswered(answeredBefore)
    const signalledAtMs = performance.now()
    expect(load.inFlight()).toBeGreaterThan(0)
    // Wait until the newest request has left this process.
    await nextTurn()
    expect(await relay.stop()).toEqual({ code: 0, signal: null })
    expect(performance.now() - signalledAtMs).toBeLessThan(3 * 10_000)

    const answers = await load.stop()
    expect(answers.filter(({ begunAtMs, status }) => begunAtMs < signalledAtMs && status !== 200)).toEqual([])
    // Every sender went on until the relay accepted no connection. Each push was either answered 200 or not accepted at all.
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, null]))
    acknowledged.push(...answers.filter(({ status }) => status === 200).map(({ body }) => body))
  }
  const kept = await storedBodies(join(folder, 'relay.db'))
  expect(acknowledged.filter((body) => !kept.has(body))).toEqual([])
  expect(acknowledged.length).toBeGreaterThan(byForm(150, 500))
})

test('X1, X2: a stopping relay accepts no connection, and a second SIGINT does no harm', async () => {
  const folder = temporaryFolder()
  await using relay = await runRelay(configIn(folder))
  const body = distinctPushes(1).next()
  const slow = await startSlowPush(relay.publicUrl, body)
  const stopping = relay.logged(STOPPING)
  // Send SIGINT twice, as npm does.
  relay.process.kill('SIGINT')
  await stopping
  relay.process.kill('SIGINT')
  for (const url of [relay.publicUrl, relay.internalUrl]) {
    await expect.poll(() => takesConnections(`${url}/healthz`)).toBe(false)
  }
  expect(relay.process.exitCode).toBeNull()
  expect(await slow.finish()).toMatch(/HTTP\/1\.1 200 OK\r\n.*Connection: close\r\n/s)
  expect(await relay.ended).toEqual({ code: 0, signal: null })
  expect(await storedBodies(join(folder, 'relay.db'))).toEqual(new Set([body]))
})

onlyLong(test)('X1: requests that outlast shutdownTimeout are cut off, and the exit code is still 0', async () => {
  await using relay = await runRelay(configIn(temporaryFolder(), '1s'))
  const slow = await startSlowPush(relay.publicUrl, distinctPushes(1).next())
  const signalledAtMs = performance.now()
  expect(await relay.stop()).toEqual({ code: 0, signal: null })
  expect(performance.now() - signalledAtMs).toBeGreaterThan(900)
  expect(slow.socket.destroyed || slow.socket.readableEnded).toBe(true)
})

onlyLong(test)('X2: a second signal, after at least a second, ends a slow stop at once', async () => {
  await using relay = await runRelay(configIn(temporaryFolder(), '5m'))
  await startSlowPush(relay.publicUrl, distinctPushes(1).next())
  const stopping = relay.logged(STOPPING)
  relay.process.kill('SIGINT')
  await stopping
  const firstAtMs = performance.now()
  const impatient = setInterval(() => relay.process.kill('SIGINT'), 100)
  const ended = await relay.ended
  clearInterval(impatient)
  expect(ended).toEqual({ code: 1, signal: null })
  expect(performance.now() - firstAtMs).toBeGreaterThan(900)
})
