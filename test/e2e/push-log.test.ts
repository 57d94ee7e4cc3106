import { expect, test } from 'vitest'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

test('refused pushes are logged in at most two lines with counts, and so are quarantined pushes', async () => {
  const relay = await relayOfTest()
  const forged = { 'x-service-hmac-sha256': Buffer.alloc(32, 1).toString('base64') }
  for (let nth = 0; nth < 5; nth++) expect((await push(relay.publicUrl, `{"n":${nth}}`, forged)).status).toBe(401)
  for (let nth = 0; nth < 3; nth++) expect((await push(relay.publicUrl, `{"n":${nth}}`)).status).toBe(200)
  await relay.stop()
  const counted = (part: string) =>
    relay.lines
      .filter(({ message }) => message.includes(part))
      .map(({ level, fields }) => [level, 'count' in fields ? Number(fields.count) : 0] as const)
  for (const [part, total] of [
    ['pushes were refused: the signature', 5],
    ['pushes were quarantined', 3],
  ] as const) {
    const lines = counted(part)
    expect(lines.length).toBeLessThanOrEqual(2)
    expect(lines.reduce((sum, [, count]) => sum + count, 0)).toBe(total)
    expect(new Set(lines.map(([level]) => level))).toEqual(new Set(['warn']))
  }
  const refused = relay.lines.find(({ message }) => message.includes('pushes were refused: the signature'))
  expect(refused?.fields).toMatchObject({ senders: ['127.0.0.1'] })
})
