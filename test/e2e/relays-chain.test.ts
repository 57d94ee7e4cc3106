import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { type Asker, textOf, untilCaughtUp } from '../support/relay/caught-up.ts'
import { ADMIN, logIn, SHOP } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { inSeconds, metricOf } from '../support/relay/relay-process.ts'
import { spawnSandbox } from '../support/relay/sandbox-process.ts'
import { byForm } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const PARCELS = byForm(15, 60)
const FLAGS = ['--parcels', String(PARCELS), '--seed', '5', '--hard', '0.4', '--loss', '0.2', '--language-gaps', '0.1']
const LANGUAGES = ['en', 'sv'] as const
const MID_LIFE_SECONDS = 20 * 3600
const KINDS = ['all', 'latest'] as const

function folderOf(name: string): string {
  const folder = join(temporaryFolder(), name)
  mkdirSync(folder)
  return folder
}

async function refresh({ internalUrl, token }: Asker, identifiers: readonly string[]): Promise<void> {
  const init = { method: 'POST', headers: { authorization: `Bearer ${token}` } }
  for (const answer of await Promise.all(identifiers.map((id) => fetchDocumented(`${internalUrl}/relay/parcels/${id}/refresh`, init)))) {
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('"recorded"')])
  }
}

async function everyAnswer(asker: Asker, identifiers: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const answers = identifiers.flatMap((identifier) =>
    KINDS.flatMap((kind) =>
      LANGUAGES.map(async (language) => [`${identifier} ${kind} ${language}`, await textOf(asker, identifier, kind, language)] as const),
    ),
  )
  return new Map(await Promise.all(answers))
}

test('7.5: a relay whose carrier is a relay serves the same bytes in every language', async () => {
  await using sandbox = await spawnSandbox(FLAGS)
  const near = await relayOfTest(inSeconds, { folder: folderOf('near'), carrierUrl: sandbox.url })
  const asAnApp = { ...inSeconds, upstream: { ...inSeconds.upstream, ...SHOP } }
  const far = await relayOfTest(asAnApp, { folder: folderOf('far'), carrierUrl: near.internalUrl })
  const [a, b] = await Promise.all([near, far].map(async ({ internalUrl }) => ({ internalUrl, token: await logIn(internalUrl, ADMIN) })))
  if (a === undefined || b === undefined) throw new Error('two relays were started')
  await sandbox.order('webhooks', { urls: [`${near.publicUrl}/webhooks/status`] })
  await sandbox.order('advance', { seconds: MID_LIFE_SECONDS })
  const numbers = (await sandbox.world()).parcels.map(({ trackingNumber }) => trackingNumber)
  // Apps of both relays ask for every parcel in mid-life. The far relay finds later events by its own polls of the near relay.
  for (const asker of [a, b]) await Promise.all(numbers.map((number) => textOf(asker, number, 'all', 'en')))
  await sandbox.order('finish')
  const { parcels, tally } = await sandbox.world()
  await refresh(a, numbers)
  await untilCaughtUp(b, parcels, 'en', ({ trackingNumber }) => trackingNumber)
  expect(await metricOf(b.internalUrl, 'relay_polls_total{outcome="found"}')).toBeGreaterThan(numbers.length)
  // Scheduled polls do not fetch changed texts in the second language, so refresh each parcel.
  await refresh(b, numbers)

  const carried = await everyAnswer(a, numbers)
  expect(await everyAnswer(b, numbers)).toEqual(carried)

  expect(carried.size).toBe(PARCELS * 4)
  for (const parcel of parcels)
    for (const language of LANGUAGES) expect(carried.get(`${parcel.trackingNumber} all ${language}`)).toBe(parcel.answers[language])
  const texts = [...carried.values()].join('\n')
  expect(tally.equalEntries).toBeGreaterThan(PARCELS / 6)
  expect(texts).toContain('"consignment":12345678901234567890')
  expect(texts).toContain('"lanes":[')
  expect(texts).toMatch(/"consumerDescription":null,"displayToConsumer":true/)
})
