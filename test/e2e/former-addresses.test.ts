import { expect, test } from 'vitest'
import { endpointOfTest, operatorOf } from '../support/relay/manage.ts'
import { ADMIN, logIn } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'

const ofFile = relayOfFile(NO_CARRIER)
const own = idsOfTest()

test('the former list and replay of missing events answer 400 and name what to do instead', async () => {
  const operate = await operatorOf(ofFile())
  const id = await endpointOfTest(ofFile(), { name: own('former'), url: `${NO_CARRIER}/` })
  const authorization = `Bearer ${await logIn(ofFile().internalUrl, ADMIN)}`
  const list = await fetch(`${ofFile().internalUrl}/relay/endpoints/${id}/missing`, { headers: { authorization } })
  const replay = await operate('POST', `/relay/endpoints/${id}/replay`, { missing: true })
  expect([list.status, replay.status]).toEqual([400, 400])
  for (const text of [await list.text(), replay.text]) expect(text).toMatch(/\\"from\\": N and \\"backfill\\": true.*\\"of\\"/)
})
