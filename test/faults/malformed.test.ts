import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { push, writeConfig } from '../support/relay/relay.ts'
import { memoryOf, runRelay } from '../support/relay/relay-process.ts'
import { byForm, SHORT } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { rawRequest, signed } from './world.ts'

const INPUTS = byForm(300, 300, 100_000)
const AT_ONCE = 128
/** After this many pushes and a pause the relay's memory is at its usual size. */
const WARM_UP = byForm(50, 50, 10_000)
const MB = 1024 * 1024
const DRIFT_MAX = 50 * MB
/** A complete request is answered within this time. */
const ENOUGH_MS = 250
const SEED = 20_260_301
/** Bytes that have a meaning for parsers. */
const TELLING = Buffer.from('{}[]",:\\\r\n\0\u00ff 09eE+-x')

/** Returns a source of random whole numbers from 0 to below a limit (mulberry32). The same seed gives the same numbers. */
function createDice(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

/** Mutates one to four times: changes, inserts, removes or repeats bytes, or cuts off the rest. */
function mutate(bytes: Buffer, dice: (below: number) => number): Buffer {
  let mutated = bytes
  for (let left = 1 + dice(4); left > 0; left--) {
    const at = dice(mutated.length + 1)
    const [before, after] = [mutated.subarray(0, at), mutated.subarray(at)]
    const some = 1 + dice(16)
    const byte = dice(2) === 0 ? Buffer.from([dice(256)]) : TELLING.subarray(dice(TELLING.length)).subarray(0, 1)
    const ways = [
      () => [before, byte, after.subarray(1)],
      () => [before, byte, after],
      () => [before, after.subarray(some)],
      () => [before, after.subarray(0, some), after],
      () => [before],
    ]
    mutated = Buffer.concat(ways[dice(ways.length)]?.() ?? [])
  }
  return mutated
}

/** Sends these bytes, ends the connection after a while, and resolves with the statuses of the answers. */
function send(port: number, bytes: Buffer): Promise<readonly string[]> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => void socket.write(bytes))
    // Without an end, the relay would wait for the rest of an incomplete request.
    const timer = setTimeout(() => socket.end(), ENOUGH_MS)
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(timer)
      resolve([...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status ?? ''))
    })
  })
}

test(`F5: none of ${INPUTS} malformed inputs gets a 5xx or ends the relay; memory stays bounded`, async () => {
  await using relay = await runRelay(writeConfig(temporaryFolder(), 'http://127.0.0.1:9', { limits: { failuresPerMinute: 1_000_000 } }))
  const pid = relay.process.pid ?? 0
  const port = Number(new URL(relay.publicUrl).port)
  const pushed = async (nth: number) => (await push(relay.publicUrl, pushBody({ trackingIds: [String(10_000_000 + nth)] }))).status
  for (let lot = 0; lot < WARM_UP / 50; lot++) await Promise.all(Array.from({ length: 50 }, (_, at) => pushed(lot * 50 + at)))
  if (!SHORT) await pause(2000)
  const idleBytes = memoryOf(pid).residentBytes

  const dice = createDice(SEED)
  const requestOf = (body: Buffer) =>
    Buffer.concat(
      rawRequest('POST', [`x-service-hmac-sha256: ${signed(body)}`, `Content-Length: ${body.length}`, 'Connection: close'], body).map(
        (part) => Buffer.from(part),
      ),
    )
  const seen: Record<string, number> = {}
  let begun = 0
  const sendOn = async (): Promise<void> => {
    while (begun < INPUTS) {
      begun++
      const body = pushBody({ trackingIds: [String(20_000_000 + dice(1000))] })
      // Every second input is a strange body with a right signature. In the others anything may be wrong.
      const input = begun % 2 === 0 ? requestOf(mutate(body, dice)) : mutate(requestOf(body), dice)
      const statuses = await send(port, input)
      for (const status of statuses.length === 0 ? ['closed'] : statuses) seen[status] = (seen[status] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, sendOn))
  const after = memoryOf(pid).residentBytes
  console.info(
    `F5: sent: ${INPUTS} mutations of a signed push, of its body or of all of it; seen: ${JSON.stringify(seen)}; memory ${Math.round(idleBytes / MB)} MB idle, ${Math.round(after / MB)} MB after`,
  )
  expect(Object.keys(seen).filter((status) => status.startsWith('5'))).toEqual([])
  expect(await pushed(WARM_UP)).toBe(200)
  // The relay is idle at both measurements, so the difference is memory that it did not free.
  if (!SHORT) expect(after - idleBytes).toBeLessThan(DRIFT_MAX)
})
