import { expect, onTestFinished, test } from 'vitest'
import { openCarrier } from '../core/carrier/carrier-double.ts'
import { answerBody, pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { push, type Sections } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

/** PostgreSQL can store neither NUL nor half a surrogate pair. The text also contains the escape that the relay stores for NUL. */
const TEXT = 'a\u0000b\u0001c\ud800d\udc00e\u{1f600}'
const ASKED = encodeURIComponent('a\u0000b\u0001c')

/** Matches the parts of answers that differ between relays: ids of parcels and pushes, times, addresses, signatures. */
const OWN =
  /urn:uuid:[^"]+|127\.0\.0\.1:\d+|[0-9a-f]{12}_\d+|"id":"\d+"(?=,"(?:state":"quarantined|identifiers)")|\d{4}-\d\d-\d\dT[\d:.]+Z|"\w+(?:At|Ms)":\d+/g

/** Sends the text through every input of a relay, and returns all its answers. */
async function say(sections: Sections): Promise<readonly unknown[]> {
  const receiver = await startWebhookReceiver()
  receiver.answer(() => ({ status: 422, body: TEXT }))
  const body = answerBody({
    trackingIds: ['2002'],
    distributionType: TEXT,
    statuses: [
      { status: TEXT, detailedStatus: TEXT, location: TEXT, consumerDescription: TEXT, detailedStatusDescription: TEXT, [TEXT]: TEXT },
    ],
    extra: { [TEXT]: TEXT },
  })
  const carrier = await openCarrier({
    status: (_request, response) =>
      response.writeHead(200, { 'content-type': 'application/json', 'content-language': 'e\u00e9' }).end(body),
  })
  onTestFinished(async () => {
    await carrier.close()
    await receiver[Symbol.asyncDispose]()
  })
  const relay = await relayOfTest(
    { poll: { cron: '0 0 1 1 *' }, delivery: { schedule: ['1h'], allowNetworks: ['127.0.0.0/8'] }, ...sections },
    { carrierUrl: carrier.url },
  )
  const operator = await operatorOf(relay)
  const answers: unknown[] = []
  const ask = async (method: string, path: string, sent?: unknown) => {
    const { status, text } = await operator(method, path, sent)
    answers.push([method, path, status, text.replaceAll(OWN, '')])
  }
  await ask('POST', '/relay/endpoints', { name: TEXT, url: receiver.url })
  const filters = { status: [TEXT, 'TerminalArrived'] }
  await ask('POST', '/relay/endpoints', { name: 'a\ud800b', url: receiver.url, sharedKey: 'a-key-of-some-length', filters })
  for (const fields of [
    {},
    { status: TEXT, detailedStatus: TEXT, location: TEXT, distributionType: TEXT, texts: { en: TEXT, [TEXT]: TEXT } },
  ]) {
    answers.push((await push(relay.publicUrl, pushBody({ ...fields, trackingIds: ['1001'] }))).status)
  }
  for (const trackingIds of [[TEXT], ['1001', TEXT], ['1001\u0000']]) {
    answers.push((await push(relay.publicUrl, pushBody({ trackingIds }))).status)
  }
  answers.push((await push(relay.publicUrl, pushBody({ location: 'encoded' }), { 'content-encoding': 'x\u00e9' })).status)
  await ask('PUT', '/relay/parcels/2002/watch')
  await ask('POST', '/relay/parcels/2002/refresh')
  for (const id of ['1001', '2002', ASKED]) {
    await ask('GET', `/v1/status/${id}/all?language=en`)
    await ask('GET', `/v1/status/${id}/latest?language=${ASKED}`)
    await ask('GET', `/relay/parcels/${id}`)
    await ask('PUT', `/relay/parcels/${id}/watch`)
  }
  await ask('GET', `/relay/parcels?status=${ASKED}`)
  await ask('GET', `/relay/inbox?state=quarantined`)
  await ask('GET', '/relay/endpoints')
  await expect.poll(async () => (await operator('GET', '/relay/deliveries/1')).text).toContain('422')
  await ask('GET', '/relay/deliveries/1')
  await ask('GET', '/relay/events?after=0')
  await ask('GET', `/relay/jobs/${ASKED}`)
  return answers
}

test('B6: NUL and half surrogate pairs break nothing, and both engines answer the same', async () => {
  const [one, other] = await Promise.all([say({}), say(await onPostgres())])
  expect(other).toEqual(one)
  expect(JSON.stringify(one)).not.toMatch(/storage_unavailable|error:internal/)
})
