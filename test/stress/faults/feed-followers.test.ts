import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { distinctPushes, startLoad } from '../../support/network/push-load.ts'
import { ask, logIn, push, SHOP, writeConfig } from '../../support/relay/relay.ts'
import { metricOf, runRelay } from '../../support/relay/relay-process.ts'
import { LONG } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

/** `npm run faults` uses as many followers as a large company has. */
const { followers, pushes } = LONG ? { followers: 1000, pushes: 3000 } : { followers: 50, pushes: 600 }

/** Reads a stream of the feed as bytes, and only counts its events. Other tests check their contents. */
function openFollower(internalUrl: string, token: string, after: number) {
  const { hostname, port } = new URL(internalUrl)
  const sequences: number[] = []
  const socket = connect(Number(port), hostname, () => {
    socket.write(
      `GET /relay/events?after=${after} HTTP/1.1\r\nHost: relay\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    )
  })
  let rest = ''
  socket.on('error', () => undefined).setEncoding('latin1')
  socket.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('id: ')) sequences.push(Number(line.slice(4)))
  })
  return { sequences, close: () => socket.destroy() }
}

test(`${followers} streams get every event in order, and ${pushes} pushes cost little more`, async () => {
  await using relay = await runRelay(writeConfig(temporaryFolder(), 'http://127.0.0.1:9', { serve: { fetchUnknown: false } }))
  const token = await logIn(relay.internalUrl, SHOP)
  const { next } = distinctPushes(50)
  const cpuSeconds = async () => await metricOf(relay.internalUrl, 'process_cpu_seconds_total')
  const cpuOf = async (until: () => Promise<void>) => {
    const before = await cpuSeconds()
    const load = startLoad(relay.publicUrl, 16, next)
    await load.untilAnswered(pushes)
    const answers = await load.stop()
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    await until()
    return { cpu: (await cpuSeconds()) - before, pushed: answers.length }
  }
  await push(relay.publicUrl, next())
  await cpuOf(async () => undefined)
  const alone = await cpuOf(async () => undefined)

  let start = 0
  for (let read = -1; read !== start; ) {
    read = start
    start = JSON.parse(await (await ask(relay.internalUrl, token, `/relay/events?after=${start}&limit=500`)).text()).next
  }
  const streams = Array.from({ length: followers }, () => openFollower(relay.internalUrl, token, start))
  let due = 0
  const beside = await cpuOf(async () => {
    const [first] = streams
    await expect.poll(() => first?.sequences.length, { timeout: 60_000 }).toBeGreaterThanOrEqual(pushes)
    // Count before asking for the rest, because the stream goes on meanwhile.
    const had = first?.sequences.length ?? 0
    const { events } = JSON.parse(await (await ask(relay.internalUrl, token, `/relay/events?after=${first?.sequences.at(-1)}`)).text())
    due = had + events.length
    await expect.poll(() => streams.filter(({ sequences }) => sequences.length < due).length, { timeout: 60_000 }).toBe(0)
  })
  for (const { sequences, close } of streams) {
    expect(sequences).toEqual(streams[0]?.sequences)
    close()
  }
  expect(streams[0]?.sequences).toEqual([...new Set(streams[0]?.sequences)].sort((a, b) => a - b))
  expect(due).toBe(beside.pushed)
  const ratio = beside.cpu / beside.pushed / (alone.cpu / alone.pushed)
  console.info(`processor time per push beside ${followers} followers: ${ratio.toFixed(2)} times that of one alone`)
  // If each follower's events were derived and encoded separately, the ratio would be 20 or more.
  expect(ratio).toBeLessThan(LONG ? 12 : 4)
})
