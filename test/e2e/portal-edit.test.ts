import { expect, test } from 'vitest'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { formIn } from '../support/portal/sent-form.ts'
import { endpointOfTest, operatorOf } from '../support/relay/manage.ts'
import { relayOfFile } from '../support/relay/relay-of-file.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'

const ofFile = relayOfFile(NO_CARRIER, { delivery: { allowNetworks: ['127.0.0.0/8'] } })
const OLD = 'http://127.0.0.1:9/old'

/** Opens the form of a webhook. Then somebody else moves the webhook to another URL. */
async function openStale(filters: object = {}) {
  const operator = await operatorOf(ofFile())
  const id = await endpointOfTest(ofFile(), { name: `till ${JSON.stringify(filters)}`.slice(0, 90), url: OLD, filters })
  const visitor = await loggedInAt(ofFile().internalUrl)
  const path = `/webhooks/${id}/edit`
  const hidden = unescaped(formIn((await visitor.get(path)).text, path))
  const { name } = JSON.parse(hidden.shown ?? '{}')
  await operator('PATCH', `/relay/endpoints/${id}`, { url: 'http://127.0.0.1:9/new' })
  const endpoint = async () => (await operator('GET', `/relay/endpoints/${id}`)).body
  return {
    send: (fields: Readonly<Record<string, string>>) => visitor.post(path, { ...hidden, url: OLD, name, events: 'entry', ...fields }),
    endpoint,
  }
}

function unescaped(fields: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, value.replaceAll('&quot;', '"').replaceAll('&#39;', "'")]))
}

test('a form that was opened before another’s change keeps that change', async () => {
  const { send, endpoint } = await openStale()
  expect((await send({ rate: '7' })).status).toBe(303)
  expect(await endpoint()).toMatchObject({ url: 'http://127.0.0.1:9/new', rate: 7 })
})

test('a field that both have changed is shown with both values, and nothing is changed', async () => {
  const { send, endpoint } = await openStale({ displayToConsumer: true })
  const answer = await send({ url: 'http://127.0.0.1:9/mine', displayToConsumer: 'true' })
  expect(answer.status).toBe(409)
  expect(answer.text).toContain('now <strong>http://127.0.0.1:9/new</strong>, you want <strong>http://127.0.0.1:9/mine</strong>')
  expect(await endpoint()).toMatchObject({ url: 'http://127.0.0.1:9/new' })
})

test('an empty list of statuses and a value with a comma stay when another field is saved', async () => {
  const filters = { status: [], detailedStatus: ['Lost, found'] }
  const { send, endpoint } = await openStale(filters)
  expect((await send({ rate: '7', statuses: 'some', detailedStatus: '"Lost, found"' })).status).toBe(303)
  expect(await endpoint()).toMatchObject({ rate: 7, filters })
})
