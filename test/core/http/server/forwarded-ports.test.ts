import { expect, onTestFinished, test } from 'vitest'
import { createAddressOf } from '../../../../src/core/http/server/request-headers.ts'
import { closeOpened, openHttp } from '../../carrier/carrier-double.ts'

test.each([
  ['192.0.2.7:4711', '192.0.2.7'],
  ['[2001:db8::7]:4711', '2001:db8::7'],
  ['[2001:db8::7]', '2001:db8::7'],
  ['2001:db8::7', '2001:db8::7'],
  ['192.0.2.7', '192.0.2.7'],
  ['192.0.2.7:4711:1', '127.0.0.1'],
])('the address of a client that a proxy forwards as %s is %s', async (forwarded, address) => {
  onTestFinished(closeOpened)
  const addressOf = createAddressOf(['127.0.0.0/8'])
  const url = await openHttp((request, response) => void response.end(addressOf(request)))
  expect(await (await fetch(url, { headers: { 'x-forwarded-for': `203.0.113.9, ${forwarded}` } })).text()).toBe(address)
})
