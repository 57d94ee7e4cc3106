import { networkInterfaces } from 'node:os'
import { afterEach, describe, expect, test } from 'vitest'
import { createEgressGuard, type EgressOptions } from '../../../src/core/outbound/egress-guard.ts'
import { closeOpened, openHttp, openTls } from '../carrier/carrier-double.ts'
import { certificate } from './self-signed.ts'
import { LOOPBACK, openSender } from './sender-world.ts'

afterEach(closeOpened)

/** The networks that are allowed by default. */
const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']
const EVERYTHING = ['0.0.0.0/0', '::/0']

function guardOf(options: Partial<EgressOptions> = {}) {
  return createEgressGuard({ allowNetworks: PRIVATE, ownPorts: () => [], lookup: async () => ['127.0.0.1'], ...options })
}

/** Ways to write a forbidden host. PORT stands for a port that listens on this machine, and every name resolves to 127.0.0.1. */
const HOSTS = {
  ipv4: '127.0.0.1 127.127.127.127 2130706433 0x7f000001 0x7f.0.0.1 0X7F.0x0.0X0.1 0x7f.1 017700000001 0177.0.0.1 0177.0000.0000.0001',
  short: '0177.1 127.1 127.0.1 127.0x0.0.01 127.0.0.1. 0 0.0.0.0',
  mended: '%31%32%37.0.0.1 127%2e0%2e0%2e1 ①②⑦.⓪.⓪.① １２７.０.０.１ 127。0。0。1',
  ipv6: '[::1] [0:0:0:0:0:0:0:1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::7f00:1] [::127.0.0.1] [::ffff:0:7f00:1]',
  tunnelled: '[64:ff9b::7f00:1] [64:ff9b:1::7f00:1] [2002:7f00:1::] [2001:0:7f00:1::]',
  reserved: '169.254.169.254 2852039166 [::ffff:a9fe:a9fe] [fe80::1] [ff02::1] [fd00:ec2::254] 100.100.100.200',
  names: 'localhost any.localhost rebind.internal',
}
const FORMS = Object.values(HOSTS).flatMap((hosts) => hosts.split(' ').map((host) => `http://${host}:PORT/hook`))

const OTHER_FORMS = [
  'http://user:secret@10.0.0.1:PORT/',
  'http://10.0.0.1@127.0.0.1:PORT/',
  'http://127.0.0.1:PORT\\@10.0.0.1/',
  'http://10.0.0.1\\@127.0.0.1:PORT/',
  'http:127.0.0.1:PORT/',
  'ftp://10.0.0.1/',
  'file:///etc/passwd',
  'unix:/var/run/docker.sock',
  'http://10.0.0.1:0/',
]
const ALL_FORMS = [...FORMS, ...OTHER_FORMS]

describe('O10: every spelling of a forbidden address', () => {
  test('covers 53 spellings', () => {
    expect(new Set(ALL_FORMS).size).toBe(53)
  })

  test.each([
    ['the private networks', PRIVATE],
    ['all networks', EVERYTHING],
  ])('is refused when %s are allowed, and nothing connects', async (_, allowNetworks) => {
    const seen = { requests: 0, lookups: 0 }
    const server = await openHttp((_request, response) => {
      seen.requests += 1
      response.end()
    })
    await using world = openSender({
      allowNetworks,
      lookup: async () => {
        seen.lookups += 1
        return ['127.0.0.1']
      },
    })
    for (const form of ALL_FORMS) {
      const url = form.replace('PORT', new URL(server).port)
      expect.soft(await world.post(url), form).toMatchObject({ kind: 'failed', reason: 'forbidden' })
    }
    // Only the three forms that are names were looked up.
    expect(seen).toEqual({ requests: 0, lookups: 3 })
  })

  test('is refused before it is saved, except a name, which needs a lookup', () => {
    const guard = guardOf({ lookup: () => Promise.reject(new Error('asked')) })
    const passed = ALL_FORMS.filter((form) => guard.checkUrl(form.replace('PORT', '8080')).ok)
    expect(passed).toEqual(['http://localhost:PORT/hook', 'http://any.localhost:PORT/hook', 'http://rebind.internal:PORT/hook'])
  })

  test.each([
    ['javascript:alert(1)', 'scheme'],
    ['gopher://10.0.0.1/', 'scheme'],
    ['', 'malformed'],
    ['//10.0.0.1/', 'malformed'],
    ['http:///10.0.0.1', 'malformed'],
    [' http://10.0.0.1/', 'malformed'],
    ['http://10.0.0.1/a\tb', 'malformed'],
    ['http://10.0.0.1/\u0001', 'malformed'],
    ['http://10.0.0.1/#x', 'malformed'],
    ['http://10.0.0.1:65536/', 'malformed'],
    ['http://@10.0.0.1/', 'userinfo'],
    ['http://10.0.0.1:00/', 'port'],
    ['http://10.1/', 'host_form'],
    ['http://012.0.0.1/', 'host_form'],
    ['http://8.8.8.8/', 'not_listed'],
    ['http://[2001:db8::1]/', 'not_listed'],
    ['http://[::ffff:8.8.8.8]/', 'not_listed'],
    ['http://127.0.0.1/', 'loopback'],
    ['http://169.254.1.1/', 'link_local'],
    ['http://[fd00:ec2::254]/', 'metadata'],
    ['http://[::7f00:1]/', 'special'],
  ])('%j is refused: %s', (url, reason) => {
    expect(guardOf().checkUrl(url)).toEqual({ ok: false, reason })
  })
})

describe('the targets of the relay', () => {
  test.each([
    'http://10.1.2.3/',
    'HTTP://192.168.0.9:8080/a?b=c',
    'https://172.16.0.1',
    'http://[fc00::1]/',
    'http://[::ffff:10.0.0.1]/',
    'http://shop.internal/x',
  ])('%s is allowed by default', (url) => {
    const { origin, pathname, search } = new URL(url)
    expect(guardOf().checkUrl(url)).toEqual({ ok: true, origin, path: pathname + search })
  })

  test.each([
    ['127.0.0.1', LOOPBACK, true],
    ['::1', LOOPBACK, true],
    ['127.0.0.1', ['127.0.0.2/32'], false],
    ['::1', ['127.0.0.1'], false],
    ['::1', ['::1'], true],
    ['127.0.0.1', ['126.0.0.0/7'], false],
    ['169.254.169.254', ['169.254.0.0/16'], false],
    ['fe80::1', ['fe80::/10'], false],
    ['0.0.0.0', ['0.0.0.0/0', '0.0.0.0'], false],
    ['64:ff9b::a00:1', ['64:ff9b::/96', '10.0.0.0/8'], false],
    ['8.8.8.8', ['0.0.0.0/0'], true],
    ['8.8.8.8', ['8.8.8.8'], true],
    ['8.8.8.9', ['8.8.8.8'], false],
  ])('%s is allowed with %j listed: %s', async (address, allowNetworks, expected) => {
    expect((await guardOf({ allowNetworks }).checkHost(address, 80)).ok).toBe(expected)
  })

  test('a listed name may resolve to any address that is not forbidden', async () => {
    const leadsTo = (address: string) => guardOf({ allowNetworks: ['shop.example', 'localhost'], lookup: async () => [address] })
    expect(await leadsTo('8.8.8.8').checkHost('Shop.Example.', 80)).toEqual({ ok: true, addresses: ['8.8.8.8'] })
    expect(await leadsTo('8.8.8.8').checkHost('other.example', 80)).toEqual({ ok: false, reason: 'not_listed' })
    expect(await leadsTo('169.254.169.254').checkHost('shop.example', 80)).toEqual({ ok: false, reason: 'link_local' })
    expect(await leadsTo('127.0.0.1').checkHost('shop.example', 80)).toEqual({ ok: false, reason: 'loopback' })
    expect(await leadsTo('127.0.0.1').checkHost('localhost', 80)).toEqual({ ok: true, addresses: ['127.0.0.1'] })
  })

  test('an address allowed before the relay’s own ports were known is checked again', () => {
    const ports: number[] = []
    const guard = guardOf({ allowNetworks: LOOPBACK, ownPorts: () => ports })
    expect(guard.checkUrl('http://127.0.0.1:8081/hook')).toMatchObject({ ok: true })
    ports.push(8080, 8081)
    expect(guard.checkUrl('http://127.0.0.1:8081/hook')).toEqual({ ok: false, reason: 'own_port' })
    ports.splice(1, 1, 8082)
    expect(guard.checkUrl('http://127.0.0.1:8081/hook')).toMatchObject({ ok: true })
  })

  test('the relay’s ports are refused on all addresses of its machine, unless listed with the port', async () => {
    const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses?.map(({ address }) => address) ?? [])
    const guard = guardOf({ allowNetworks: [...LOOPBACK, ...EVERYTHING, '127.0.0.9:8081'], ownPorts: () => [8080, 8081] })
    for (const address of ['127.0.0.1', '127.4.4.4', '::1', '::ffff:127.0.0.1', ...own.filter((one) => !one.startsWith('fe80'))]) {
      expect.soft(await guard.checkHost(address, 8080), address).toEqual({ ok: false, reason: 'own_port' })
      expect.soft(await guard.checkHost(address, 8082), address).toEqual({ ok: true, addresses: [address] })
    }
    expect(guard.checkUrl('http://127.0.0.1:8081/hook')).toEqual({ ok: false, reason: 'own_port' })
    expect(guard.checkUrl('http://127.0.0.9:8081/hook').ok).toBe(true)
    // Another machine may use the same port.
    expect((await guard.checkHost('203.0.113.7', 8080)).ok).toBe(true)
  })

  test('simultaneous lookups of a name share one answer, and later lookups ask again', async () => {
    let asked = 0
    const guard = guardOf({
      lookup: async () => {
        asked += 1
        return ['10.0.0.1']
      },
    })
    await Promise.all([1, 2, 3].map(() => guard.checkHost('shop.internal', 80)))
    expect(asked).toBe(1)
    await guard.checkHost('shop.internal', 80)
    expect(asked).toBe(2)
  })

  test('a name without addresses is refused', async () => {
    expect((await guardOf({ lookup: async () => [] }).checkHost('shop.internal', 80)).ok).toBe(false)
  })
})

describe('O11: names whose addresses change', () => {
  const openClosing = () => openHttp((_request, response) => void response.writeHead(200, { connection: 'close' }).end())
  const named = (url: string) => url.replace('127.0.0.1', 'shop.internal')

  test('a name that moves from an allowed address to the metadata service is then refused', async () => {
    const answers = [['127.0.0.1'], ['169.254.169.254']]
    const url = await openClosing()
    await using world = openSender({ lookup: async () => answers.shift() ?? [] })
    expect(await world.post(named(url))).toMatchObject({ kind: 'accepted' })
    expect(await world.post(named(url))).toMatchObject({ kind: 'failed', reason: 'forbidden', detail: 'link_local' })
    expect(answers).toEqual([])
  })

  test('the address connected to is the one that was checked, without a second lookup', async () => {
    let asked = 0
    const url = await openClosing()
    await using world = openSender({
      lookup: async () => {
        asked += 1
        return [asked === 1 ? '127.0.0.1' : '127.0.0.2']
      },
    })
    expect(await world.post(named(url))).toMatchObject({ kind: 'accepted' })
    expect(asked).toBe(1)
    // A second lookup would give another allowed address without a listener, so the post would fail.
    expect(await world.post(named(url))).toMatchObject({ kind: 'failed', reason: 'connection_refused' })
  })

  test.each([
    [['127.0.0.1', '169.254.169.254'], 'link_local'],
    [['127.0.0.1', 'fe80::1'], 'link_local'],
    [['127.0.0.1', '10.0.0.1'], 'not_listed'],
    [['127.0.0.1', 'not an address'], 'not_an_address'],
  ])('a name is refused if one of its addresses is not allowed: %j: %s', async (addresses, detail) => {
    let connections = 0
    const url = await openHttp((_request, response) => {
      connections += 1
      response.end()
    })
    await using world = openSender({ lookup: async () => addresses })
    expect(await world.post(named(url))).toMatchObject({ kind: 'failed', reason: 'forbidden', detail })
    expect(connections).toBe(0)
  })

  test('a name with several addresses is reached if any of them answers', async () => {
    const url = await openClosing()
    await using world = openSender({ lookup: async () => ['127.0.0.2', '127.0.0.3', '127.0.0.1'] })
    expect(await world.post(named(url))).toMatchObject({ kind: 'accepted' })
  })

  test('the certificate must be for the name, although the connection goes to an address', async () => {
    const url = await openTls((_request, response) => void response.end())
    await using world = openSender({ lookup: async () => ['127.0.0.1'] })
    expect(await world.post(url, certificate)).toMatchObject({ kind: 'accepted' })
    const elsewhere = url.replace('localhost', 'shop.internal')
    expect(await world.post(elsewhere, certificate)).toMatchObject({
      kind: 'failed',
      reason: 'certificate_wrong_name',
      detail: 'ERR_TLS_CERT_ALTNAME_INVALID',
    })
  })
})
