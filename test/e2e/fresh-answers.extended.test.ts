import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { ask, logIn, push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

const PARCELS = ['1001', '1002', '1003', '1004']

test('after a push is answered, no answer that was cached before the push is served', async () => {
  const relay = await relayOfTest({ serve: { fetchUnknown: false, fetchMissingLanguage: false } })
  const token = await logIn(relay.internalUrl)
  const entriesOf = async (parcel: string): Promise<number> => {
    const answer: unknown = await (await ask(relay.internalUrl, token, `/v1/status/${parcel}/all`)).json()
    return typeof answer === 'object' && answer !== null && 'statuses' in answer && Array.isArray(answer.statuses)
      ? answer.statuses.length
      : 0
  }
  const follow = async (parcel: string) => {
    const seen: number[] = []
    for (let minute = 10; minute < 60; minute++) {
      expect((await push(relay.publicUrl, pushBody({ eventTime: `2026-03-01T10:${minute}:00Z`, trackingIds: [parcel] }))).status).toBe(200)
      // The first request fills the cache, and the second is answered from it.
      seen.push(await entriesOf(parcel), await entriesOf(parcel))
    }
    return seen
  }
  const expected = Array.from({ length: 100 }, (_, at) => Math.floor(at / 2) + 1)
  expect(await Promise.all(PARCELS.map(follow))).toEqual(PARCELS.map(() => expected))
  const metrics = await (await fetchDocumented(`${relay.internalUrl}/metrics`)).text()
  expect(metrics).toMatch(/relay_served_total\{result="hit"\} 400/)
  expect(metrics).toMatch(/relay_pushes_received_total\{outcome="recorded",key="0"\} 200/)
})
