import { expect, test } from 'vitest'
import { loggedInAt } from '../../support/portal/portal-visitor.ts'
import { addressOf, startDemo } from './demo-process.ts'

/** The texts that pages of the demo's portal must show about the problems that the demo announces. */
const TROUBLE = [
  [
    '/',
    ['billing fails', 'billing-db-2: no space left on device', 'old-shop answered 410 Gone and is disabled', '4 pushes are in quarantine'],
  ],
  ['/deliveries?state=retrying', ['billing', '503']],
  ['/deliveries?state=held', ['old-shop']],
  ['/deliveries?state=delivered', ['Operator event']],
  ['/inbox', ['eventTime is not a UTC time', 'it is not JSON', 'Refused signatures']],
  ['/webhooks', ['warehouse', '500']],
  ['/parcels/AB123456798SE', ['nothing known', 'knows nothing of it']],
] as const

test('the portal of a demo shows the problems that it announces, and all histories complete', async () => {
  const demo = startDemo(['--free-ports', '--parcels', '6', '--seconds', '3'])
  await demo.said('Ctrl-C ends the demo.')
  expect(demo.lines.join('\n')).toMatch(/There is trouble to look at: the webhook billing fails/)
  const visitor = await loggedInAt(addressOf(demo.lines, 'relay, internal'))
  for (const [path, words] of TROUBLE)
    await expect
      .poll(async () => {
        const { text } = await visitor.get(path)
        return words.filter((word) => !text.includes(word))
      })
      .toEqual([])
  const [, told = ''] = /href="(\/deliveries\/\d+)">Operator event/.exec((await visitor.get('/deliveries?state=delivered')).text) ?? []
  const { text } = await visitor.get(told)
  expect([text.includes('the address in operator.url'), text.includes('Send to another webhook')]).toEqual([true, false])
  await demo.said('All 6 histories are complete')
})
