import { expect, test } from 'vitest'
import { EVERY_SETTING, endpointChangeSchema, newEndpointSchema } from '../../../src/core/domain/delivery/endpoint-settings.ts'
import { pushBody } from '../../support/history/builders.ts'
import { push } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { operatorEnv, runCommand } from '../../support/relay/run-command.ts'

/** In Base64, as the libraries of Standard Webhooks want it. */
const KEY = Buffer.from('a-shared-key-for-tests-only').toString('base64')
const URL = 'http://127.0.0.1:9/'

/** How the command line sets a member, and what the API then shows. */
interface Told {
  readonly args: readonly string[]
  readonly shown: unknown
}

/** For each member of the API's bodies. What takes no option is an argument, or has a command of its own: `enable`, `disable` and `rotate`. */
const SETTINGS: Readonly<Record<string, Told>> = {
  signature: { args: ['--signature', 'standard-webhooks'], shown: 'standard-webhooks' },
  events: {
    args: ['--events', 'parcel.recovered', '--events', 'entry, parcel.stalled'],
    shown: ['entry', 'parcel.stalled', 'parcel.recovered'],
  },
  backfill: { args: ['--backfill'], shown: true },
  rate: { args: ['--rate', '2.5'], shown: 2.5 },
  concurrency: { args: ['--concurrency', '3'], shown: 3 },
  schedule: { args: ['--schedule', '5s, 5m', '--schedule', '30m'], shown: ['5s', '5m', '30m'] },
  refusals: { args: ['--refusals', 'skip'], shown: 'skip' },
  headers: { args: ['--header', 'X-Shop=SHOP_TOKEN'], shown: { 'x-shop': '[redacted]' } },
}
const FILTERS: Readonly<Record<string, Told>> = {
  status: { args: ['--status', 'Created', '--status', 'Ingested'], shown: ['Created', 'Ingested'] },
  detailedStatus: { args: ['--detailed-status', 'ArrivedT2'], shown: ['ArrivedT2'] },
  distributionType: { args: ['--distribution-type', 'Mailbox'], shown: ['Mailbox'] },
  label: { args: ['--label', 'shop=north'], shown: ['shop=north'] },
  displayToConsumer: { args: ['--display-to-consumer', 'no'], shown: false },
}
const ONLY_ADD: Readonly<Record<string, Told>> = {
  enabled: { args: ['--disabled'], shown: false },
  from: { args: ['--from', '1'], shown: undefined },
  sharedKey: { args: ['--key-env', 'KEY_OF_TEST'], shown: undefined },
}
const ONLY_SET: Readonly<Record<string, Told>> = {
  name: { args: ['--name', 'lab'], shown: 'lab' },
  url: { args: ['--to', `${URL}moved`], shown: `${URL}moved` },
}
/** What takes a member back, in the order of `SETTINGS` and `FILTERS`. */
const TAKEN_BACK =
  `--signature carrier --events entry --no-backfill --no-rate --no-concurrency --no-schedule --refusals wait --remove-header X-Shop
  --no-status --no-detailed-status --no-distribution-type --no-label --no-display-to-consumer`.split(/\s+/)

/** What the API says of options that only it reads. */
const WRONG_IN_API: Readonly<Record<string, RegExp>> = {
  '--schedule': /schedule.*must be a duration such as 30s/,
  '--events': /events\.1 must be one of entry, parcel\.stalled, parcel\.recovered/,
}

const argsOf = (...some: readonly Readonly<Record<string, Told>>[]) =>
  some.flatMap((settings) => Object.values(settings).flatMap(({ args }) => args))
const shownBy = (settings: Readonly<Record<string, Told>>) =>
  Object.fromEntries(Object.entries(settings).flatMap(([name, { shown }]) => (shown === undefined ? [] : [[name, shown]])))
const namesIn = (...some: readonly object[]) => some.flatMap((one) => Object.keys(one)).sort()

async function commands() {
  const relay = await relayOfTest({ delivery: { allowNetworks: ['127.0.0.0/8'] } })
  const run = (...args: readonly string[]) =>
    runCommand(['endpoints', ...args], { ...operatorEnv(relay), SHOP_TOKEN: 'of-the-shop', KEY_OF_TEST: KEY })
  return { relay, run, shown: async (name: string) => JSON.parse((await run('show', name, '--json')).stdout) }
}

test('`endpoints add` and `set` have an option for each member of the body that the API takes', () => {
  const { name, url, ...added } = newEndpointSchema.shape
  const { enabled, sharedKey, ...changed } = endpointChangeSchema.shape
  expect([name, url, enabled, sharedKey]).not.toContain(undefined)
  expect(namesIn(SETTINGS, ONLY_ADD, { filters: true })).toEqual(namesIn(added))
  expect(namesIn(SETTINGS, ONLY_SET, { filters: true })).toEqual(namesIn(changed))
  expect(namesIn(FILTERS)).toEqual(namesIn(newEndpointSchema.shape.filters.unwrap().shape))
})

test('options that take several values say that they may be repeated', () => {
  const several = Object.values(EVERY_SETTING).filter(({ kind }) => kind === 'values' || kind === 'several' || kind === 'waits')
  expect(several.length).toBeGreaterThan(5)
  expect(several.filter(({ option: [, description] }) => !description.endsWith('may be repeated'))).toEqual([])
})

test('`endpoints add` sends every setting that its options name', async () => {
  const { relay, run, shown } = await commands()
  await push(relay.publicUrl, pushBody({ trackingIds: ['70000001'] }))
  const added = await run('add', 'shop', URL, ...argsOf(SETTINGS, FILTERS, ONLY_ADD))
  expect([added.code, added.stderr.split('\n').filter((line) => !line.startsWith('warning: filters.'))]).toEqual([0, ['']])
  expect(await shown('shop')).toMatchObject({ name: 'shop', url: URL, ...shownBy({ ...SETTINGS, ...ONLY_ADD }), filters: shownBy(FILTERS) })
})

test('`endpoints set` sends every setting that its options name, and takes each back', async () => {
  const { run, shown } = await commands()
  await run('add', 'shop', URL, '--key-env', 'KEY_OF_TEST')
  const fresh = await shown('shop')
  expect((await run('set', 'shop', ...argsOf(SETTINGS, FILTERS, ONLY_SET))).code).toBe(0)
  expect(await shown('lab')).toMatchObject({ ...shownBy({ ...SETTINGS, ...ONLY_SET }), filters: shownBy(FILTERS) })
  expect((await run('set', 'lab', '--name', 'shop', '--to', URL, ...TAKEN_BACK)).code).toBe(0)
  expect(await shown('shop')).toEqual(fresh)
  expect((await run('set', 'shop', '--no-status', '--status', 'Created')).code).toBe(0)
  expect((await shown('shop')).filters.status).toEqual(['Created'])
  for (const [option, value] of Object.entries({
    '--schedule': 'soon',
    '--events': 'entry,delivered',
    '--display-to-consumer': 'perhaps',
  })) {
    const refused = await run('set', 'shop', option, value)
    expect([refused.code, refused.stdout]).toEqual([option in WRONG_IN_API ? 1 : 2, ''])
    expect(refused.stderr).toMatch(WRONG_IN_API[option] ?? /Allowed choices are yes, no/)
  }
})
