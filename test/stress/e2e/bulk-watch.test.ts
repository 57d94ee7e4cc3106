import { expect, onTestFinished, test } from 'vitest'
import { startWorld } from '../../faults/world.ts'
import { pushBody } from '../../support/history/builders.ts'
import { ADMIN, logIn } from '../../support/relay/relay.ts'

const LINES = 100_000
const ROUNDS = 3
/** The longest that a push may take, in multiples of its usual time. A push waits for at most one transaction of the list. */
const RATIO = 10

const nineInTen = (times: readonly number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.9)] ?? 0
const medianOf = (times: readonly number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0

test(`pushes take little longer while a list of ${LINES} lines is watched`, async () => {
  const world = await startWorld()
  onTestFinished(() => world.stop())
  const headers = { authorization: `Bearer ${await logIn(world.internalUrl, ADMIN)}`, 'content-type': 'text/csv' }
  let pushed = 0
  const push = async () => {
    const beganMs = performance.now()
    expect((await world.push(pushBody({ trackingIds: [String(82_000_000 + pushed++)] }))).status).toBe(200)
    return performance.now() - beganMs
  }
  async function alone() {
    const waits: number[] = []
    for (let nth = 0; nth < 100; nth++) waits.push(await push())
    return nineInTen(waits)
  }
  async function beside(round: number) {
    const lines = Array.from({ length: LINES }, (_, at) => `R${round}${String(at).padStart(8, '0')}`)
    let done = false
    const bulk = fetch(`${world.internalUrl}/relay/parcels/watch`, { method: 'POST', body: lines.join('\n'), headers })
      .then((answer) => answer.json())
      .finally(() => {
        done = true
      })
    const waits: number[] = []
    while (!done) waits.push(await push())
    expect(await bulk).toMatchObject({ lines: LINES, watched: LINES, created: LINES, failed: 0 })
    expect(waits.length).toBeGreaterThan(10)
    return nineInTen(waits)
  }
  const turns: { readonly alone: number; readonly beside: number }[] = []
  for (let round = 0; round < ROUNDS; round++) turns.push({ alone: await alone(), beside: await beside(round) })
  const [usualMs, besideMs] = [medianOf(turns.map((turn) => turn.alone)), medianOf(turns.map((turn) => turn.beside))]
  expect(besideMs, `${usualMs} ms without`).toBeLessThan(RATIO * usualMs + 50)
  console.log(`nine pushes in ten took at most ${usualMs.toFixed(1)} ms, and beside a list ${besideMs.toFixed(1)} ms`)
})
