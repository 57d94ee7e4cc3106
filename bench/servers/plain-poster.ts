import { request } from 'undici'
import { eventAt, eventBody } from '../load/event.ts'

/**
 * The rate of plain code with the same HTTP client. It posts the bodies that the relay has queued to each port (all arguments after the first)
 * in a closed loop; the first argument is the concurrency. It signs nothing and uses no store.
 */
const EVENTS = 20_000
const [, , concurrency = '', ...ports] = process.argv
const nowMs = Date.now()
const bodies = Array.from({ length: EVENTS }, (_, at) => {
  const { parcel, nth } = eventAt(at, 0)
  return eventBody(parcel, nth, nowMs)
})

async function post(url: string, from: number): Promise<never> {
  for (let at = from; ; at++) {
    const { body } = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: bodies[at % EVENTS] ?? null,
    })
    await body.dump()
  }
}

for (const port of ports) for (let lane = 0; lane < Number(concurrency); lane++) void post(`http://127.0.0.1:${port}/`, lane * 1000)
process.stdout.write(`${JSON.stringify({ port: 0 })}\n`)
