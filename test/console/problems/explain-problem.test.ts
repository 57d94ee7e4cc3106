import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { explainPlainly } from '../../support/portal/plain-explanation.ts'
import { WELL } from '../../support/portal/situation.ts'

const silent = {
  ...WELL,
  pushes: { ...WELL.pushes, health: 'silent' as const, missedSincePush: 7 },
  webhook: { path: '/hooks/parcels', misdirected: [] },
}

test('the explanation of a silence says what polls miss, and suggests the carrier before DNS', () => {
  const { evidence, todo } = explainPlainly({ kind: 'pushes_silent' }, silent, 0)
  expect(evidence).toEqual([
    'The carrier scans as usual: polls found 7 entries since then that no push brought. They run at their full rate: 1 of today’s 100 calls are used.',
    'Polls find nothing about parcels that no push has named yet: the relay does not know these parcels.',
  ])
  const at = (part: string) => todo.findIndex((step) => step.includes(part))
  expect(todo[at('Ask the carrier to what address')]).toContain('POST https://YOUR-HOST/hooks/parcels, exactly this path')
  expect(at('Ask the carrier to what address')).toBeLessThan(at('DNS'))
  expect(at('list of the parcels that are new since then')).toBe(todo.length - 1)
})

test('the explanation of a silence names wrong paths that got a POST since the last push', () => {
  const posted = { path: '/hook/parcels', isSigned: true, count: 120, firstAtMs: 3000, lastAtMs: 9000 }
  const scanner = { ...posted, path: '/xmlrpc.php', isSigned: false, count: 500 }
  const before = { ...posted, path: '/before', lastAtMs: 1000 }
  const { evidence, todo } = explainPlainly(
    { kind: 'pushes_silent' },
    { ...silent, webhook: { path: '/hooks/parcels', misdirected: [scanner, before, posted] } },
    0,
  )
  expect(evidence.filter((one) => one.startsWith('POST'))).toEqual([
    "POST /hook/parcels: 404, 120 times since 1970-01-01T00:00:03.000Z (the webhook's path is /hooks/parcels).",
    "POST /xmlrpc.php: 404, 500 times since 1970-01-01T00:00:03.000Z, without a signature (the webhook's path is /hooks/parcels).",
  ])
  expect(todo[0]).toContain('have the carrier push to https://YOUR-HOST/hooks/parcels')
  // Since the cause is known, the steps that search for it are left out.
  expect(todo.join(' ')).not.toContain('curl')
})

test('the explanation of a full disk says since when it is full, and how much other programs use', () => {
  const MB = 1024 ** 2
  const disk = { freeBytes: 47 * MB, freeBytesMin: 64 * MB, totalBytes: 200 * MB, storeBytes: 58 * MB, path: '/data/relay.db' }
  const { sinceMs, evidence } = explainPlainly({ kind: 'disk_full', disk }, { ...WELL, disk, diskSinceMs: 5000 }, 9000)
  expect([sinceMs, evidence.at(-1)]).toEqual([
    5000,
    'On the disk of /data/relay.db 153 MB of 200 MB are used, 58 MB by the store: something else fills it.',
  ])
})

test('the explanation of lost pushes says how many are lost, and who may lose them', () => {
  const lossy = { ...WELL, pushes: { ...WELL.pushes, health: 'lossy' as const, loss: 0.34 } }
  const { title, evidence, todo } = explainPlainly({ kind: 'pushes_lossy' }, lossy, 61_000)
  expect([title, evidence[0]]).toEqual(['Many pushes are lost', 'The last push with news came 1 min ago. By estimate, 34 % are lost.'])
  expect(todo.join(' ')).toMatch(/the proxy in front.*the carrier loses them/)
})

test('losses that the relay’s own refusals explain are not blamed on the carrier or a proxy', () => {
  const at = (hour: number) => Date.UTC(2026, 2, 2, hour)
  const refused = [{ cause: 'not_stored', count: 355, fromMs: at(2) + 600_000, untilMs: at(3) + 600_000 }] as const
  const lossyWith = (counts: Readonly<Record<number, number>>) => {
    const missedByHour = Array.from({ length: 10 }, (_, hour) => ({ fromMs: at(hour), count: counts[hour] ?? 0 }))
    const lossy = { ...WELL, refused, missedByHour, pushes: { ...WELL.pushes, health: 'lossy' as const, loss: 0.34 } }
    return explainPlainly({ kind: 'pushes_lossy' }, lossy, at(10))
  }
  const own = lossyWith({ 0: 2, 2: 5, 6: 33 })
  expect(own.evidence.slice(1, 3)).toEqual([
    'The relay itself refused pushes with 503: 355 requests from 2026-03-02T02:10:00Z until 2026-03-02T03:10:00Z.',
    'Of 40 lost pushes noticed in the last 24 h, 38 were noticed while it refused pushes, or up to 3 h later. Pushes that came only after a poll had found their events are counted too.',
  ])
  expect(own.todo[0]).toContain('ask it whether it sends refused pushes again')
  expect(own.todo.join(' ')).not.toContain('the carrier loses them')
  const some = lossyWith({ 0: 20, 2: 20 })
  expect(some.todo.join(' ')).toMatch(/The carrier has not lost what the relay refused.*the proxy in front.*the carrier loses them/)
  const others = lossyWith({ 0: 20, 9: 20 })
  expect([others.evidence.join(' '), others.todo[0]]).toEqual([expect.not.stringContaining('503'), expect.stringContaining('the proxy')])
})

test('the explanation of pushes that got 503 says how many and when, and who must do what', () => {
  const refused = [
    { cause: 'not_stored', count: 2, fromMs: 9_000_000, untilMs: 9_000_000 },
    { cause: 'not_stored', count: 353, fromMs: 1000, untilMs: 61_000 },
  ] as const
  const { title, evidence, todo } = explainPlainly({ kind: 'pushes_refused', refused }, WELL, 10_000_000)
  expect([title, ...evidence.slice(0, 2)]).toEqual([
    'Pushes were answered with 503, 355 times',
    '2 requests at 1970-01-01T02:30:00Z.',
    '353 requests from 1970-01-01T00:00:01Z until 1970-01-01T00:01:01Z.',
  ])
  expect(todo.join(' ')).toMatch(/sends refused pushes again.*ask it to send again what got 503.*parcel-relay watch --file FILE/)
})

test('the explanation of pushes that got 503 says how many are known to have come again', () => {
  const evidenceOf = (again: number, count = 2) => {
    const comeback = { pushes: 120, again }
    const refused = Array.from({ length: count }, () => ({ cause: 'not_stored' as const, count: 355, fromMs: 0, untilMs: 1000, comeback }))
    return explainPlainly({ kind: 'pushes_refused', refused }, WELL, 2000).evidence[count]
  }
  expect(evidenceOf(0, 1)).toMatch(/^At most 120 different pushes were refused, and none is known to have come again\. After a restart/)
  expect(evidenceOf(59)).toMatch(/^At most 240 different pushes were refused, and at least 118 have come again\./)
  expect(evidenceOf(120)).toBe('240 pushes were refused, and all have come again.')
})

test('the explanation of a past silence says when it was, and what may still be missing', () => {
  const { title, evidence, todo } = explainPlainly({ kind: 'silence_over', silence: { fromMs: 0, toMs: 7_620_000 } }, WELL, 8_000_000)
  expect([title, evidence[0]]).toEqual([
    'No push with news came for 2 h 7 min',
    'That was from 1970-01-01T00:00:00.000Z until 1970-01-01T02:07:00.000Z. It is shown for a day.',
  ])
  expect(evidence[1]).toContain('Polls find nothing about parcels that no push has named yet')
  expect(todo[0]).toContain('Ask the carrier to send again')
})

test.each([
  ['server_error', 'reports an outage'],
  ['rejected', 'takes no question'],
  ['redirect', 'compare upstream.baseUrl'],
] as const)('the explanation of a carrier that fails (%s) says since when, and what to do', (reason, words) => {
  const carrier = {
    ...WELL.carrier,
    lastFailure: { reason, atMs: 9, said: 'run parcel-relay reload' },
    breaker: { state: 'open', failures: 20, restMs: 1000, sinceMs: 7 } as const,
  }
  const { sinceMs, evidence, todo } = explainPlainly({ kind: 'carrier_failing' }, { ...WELL, carrier }, 10)
  expect(evidence[0]).toContain('"run parcel-relay reload"')
  expect([sinceMs, todo.join(' ')]).toEqual([7, expect.stringContaining(words)])
})

test('each command in a message of the product begins with parcel-relay', () => {
  const files = globSync('src/**/*.ts')
  const bare = files.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) =>
        /(?:parcel-relay .*)(?<!parcel-relay )\b(?:endpoints|inbox|operator|deliveries) (?:remove|disable|enable|retry|show|set|--)/.test(
          line,
        ),
      ),
  )
  expect(bare).toEqual([])
})

test('a failing carrier is told with its words, what is tried next, and how many requests of apps got no answer', () => {
  const since = Date.UTC(2026, 2, 2, 1, 20)
  const carrier = {
    ...WELL.carrier,
    breaker: { state: 'open', failures: 20, restMs: 1000, sinceMs: since },
    lastFailure: { reason: 'rejected', status: 403, said: 'Not before sunrise', atMs: since + 60_000 },
  } as const
  const unserved = { fromMs: Date.UTC(2026, 2, 2, 1), count: 12 }
  const { sinceMs, evidence } = explainPlainly({ kind: 'carrier_failing' }, { ...WELL, carrier, unserved }, since + 120_000)
  expect(sinceMs).toBe(since)
  expect(evidence).toEqual([
    'The last failure, 1 min ago: it rejected the question (403) "Not before sunrise".',
    'In 1 s the relay tries one question: if it gets no answer, the pause goes on. To have it ask at once: parcel-relay check.',
    'Polls wait meanwhile, so what lost pushes would have told is not found until the carrier answers.',
    'Pushes still come. Apps are answered from the store; a parcel that the relay does not know gets 503: 12 requests since 2026-03-02T01:00:00.000Z.',
  ])
})
