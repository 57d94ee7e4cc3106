import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { ask, logIn, push, writeConfig } from '../support/relay/relay.ts'
import { metricOf, runRelay } from '../support/relay/relay-process.ts'
import { byForm, SHORT } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const NUMBER = '70000001'
/** The number of entries, a minute apart. A parcel can have at most 2,000 (DOMAIN 1.6). */
const ENTRIES = byForm(200, 2000)
const FIRST_MS = Date.UTC(2026, 2, 1)
const READERS = byForm(5, 100)
/** The number of times that each reader asks for the whole history at once. All these answers together would take two gigabytes. */
const ASKS = byForm(10, 50)
const RSS_GROWTH_MAX = 128 * 1024 * 1024

const entry = (nth: number) =>
  pushBody({ trackingIds: [NUMBER], location: `place ${nth}`, eventTime: new Date(FIRST_MS + nth * 60_000).toISOString() })

test(`R6, R7: ${READERS} apps that each leave ${ASKS} answers unread cost almost no memory or time`, async () => {
  await using relay = await runRelay(writeConfig(temporaryFolder(), 'http://127.0.0.1:9'))
  const memory = async () => await metricOf(relay.internalUrl, 'process_resident_memory_bytes')
  for (let nth = 0; nth < ENTRIES; nth += 50) {
    const answers = await Promise.all(Array.from({ length: 50 }, (_, at) => push(relay.publicUrl, entry(nth + at))))
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  }
  const token = await logIn(relay.internalUrl)
  const history = async () => await (await ask(relay.internalUrl, token, `/v1/status/${NUMBER}/all`)).json()
  for (let nth = 0; nth < byForm(1, 100); nth++) expect(await history()).toMatchObject({ statuses: { length: ENTRIES } })
  const before = await memory()

  const port = Number(new URL(relay.internalUrl).port)
  const request = `GET /v1/status/${NUMBER}/all HTTP/1.1\r\nHost: relay\r\nAuthorization: Bearer ${token}\r\n\r\n`
  const sockets = Array.from({ length: READERS }, () => {
    const socket = connect(port, '127.0.0.1', () => void socket.write(request.repeat(ASKS)))
    return socket.pause().on('error', () => undefined)
  })
  let most = 0
  for (let nth = 0; nth < byForm(3, 20); nth++) {
    const answer = await ask(relay.internalUrl, token, `/v1/status/${NUMBER}/latest`)
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining(`place ${ENTRIES - 1}`)])
    most = Math.max(most, await memory())
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  for (const socket of sockets) socket.destroy()
  if (!SHORT) expect(most - before).toBeLessThan(RSS_GROWTH_MAX)
})
