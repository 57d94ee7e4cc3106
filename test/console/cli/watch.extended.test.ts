import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openRelay } from '../../../src/console/cli/asking/ask-relay.ts'
import { noteBegan } from '../../../src/console/cli/watch.command.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { ADMIN } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { commandsOf } from '../../support/relay/run-command.ts'

/** A relay, and `add`, which adds an endpoint and returns when it began. */
async function relayWithoutEndpoints() {
  const relay = await relayOfTest()
  const operator = await operatorOf(relay)
  const add = async (name: string, more: { readonly backfill?: boolean; readonly enabled?: boolean } = {}) => {
    const { status, body } = await operator('POST', '/relay/endpoints', { name, url: 'http://shop.internal/', ...more })
    expect([name, status]).toEqual([name, 201])
    return String(body.beganAt)
  }
  return { relay, add }
}

test('the note of watch names up to ten endpoints with when they began, and counts the rest', async () => {
  const { relay, add } = await relayWithoutEndpoints()
  const ask = await openRelay({ url: relay.internalUrl, ...ADMIN })
  expect(await noteBegan(ask)).toBe('')
  const head = 'Endpoints are sent what the first polls find:\n'
  const shop = `  shop: what happened since ${await add('shop')}\n`
  expect(shop).toMatch(/ since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*Z\n$/)
  expect(await noteBegan(ask)).toBe(`${head}${shop}`)
  await add('archive', { backfill: true })
  const archive = '  archive: what happened at any time (backfill)\n'
  const others: string[] = []
  for (let nth = 3; nth <= 10; nth++) others.push(`  shop-${nth}: what happened since ${await add(`shop-${nth}`)}\n`)
  const ten = (await noteBegan(ask)).split(/(?<=\n)/)
  expect([ten[0], ten.slice(1).toSorted()]).toEqual([head, [shop, archive, ...others].toSorted()])
  for (const [nth, more] of [
    [11, 1],
    [12, 2],
  ]) {
    await add(`shop-${nth}`)
    const lines = (await noteBegan(ask)).split(/(?<=\n)/)
    expect([lines.length, lines.at(-1)]).toEqual([12, `  and ${more} more: parcel-relay endpoints\n`])
  }
})

test('the note of watch says of a disabled endpoint that it is sent nothing until it is enabled', async () => {
  const { relay, add } = await relayWithoutEndpoints()
  const since = await add('shop', { enabled: false })
  expect(await noteBegan(await openRelay({ url: relay.internalUrl, ...ADMIN }))).toBe(
    `Endpoints are sent what the first polls find:\n  shop (disabled): what happened since ${since}, once it is enabled\n`,
  )
})

test('watch --file counts no header or empty line, and names bad lines as the file numbers them', async () => {
  const relay = await relayOfTest()
  const run = commandsOf(relay)
  const file = join(relay.folder, 'parcels.csv')
  writeFileSync(file, 'identifier\n75000011\n\nno\n75000012\n')
  const { code, stdout, stderr } = await run('watch', '--file', file)
  expect([code, stdout.split('\n')[0]]).toEqual([1, '2 watched (2 new to the relay), 1 bad of 3 lines'])
  expect(stderr).toContain(`${file}:4 is not an identifier`)
})

test('watch says which endpoints are sent what since when, before it starts, and not with --json', async () => {
  const { relay, add } = await relayWithoutEndpoints()
  const run = commandsOf(relay)
  expect(await run('watch', '75000001')).toMatchObject({ code: 0, stdout: '75000001: watched, new to the relay\n' })
  const note = `Endpoints are sent what the first polls find:\n  shop: what happened since ${await add('shop')}\n`
  expect(await run('watch', '75000002')).toMatchObject({ code: 0, stdout: `${note}75000002: watched, new to the relay\n` })
  const file = join(relay.folder, 'parcels.csv')
  writeFileSync(file, 'identifier\n75000003\n')
  const { stdout: ofFile } = await run('watch', '--file', file)
  expect(ofFile.split('1 watched (1 new to the relay)')[0]).toBe(note)
  for (const what of [['75000004'], ['--file', file]]) {
    const { code, stdout } = await run('watch', ...what, '--json')
    expect([code, typeof JSON.parse(stdout)]).toEqual([0, 'object'])
    expect(stdout).not.toContain('Endpoints')
  }
})
