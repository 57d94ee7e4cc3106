import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseTokenAnswer } from '../../src/core/carrier/token/token-request.ts'
import { parseAllAnswer } from '../../src/core/domain/history/pull-response.ts'
import { parseWebhookEvent } from '../../src/core/domain/ingest/parse-push.ts'
import { freePort } from '../../src/trial/demo/postgres/throwaway-server.ts'
import { checkoutOfTest } from '../support/docs/checkout.ts'
import { documentedCommands, failedOf, typeInShell } from '../support/docs/shell-session.ts'
import { blockUnder, fencedBlocks } from '../support/runner/documented.ts'
import { testWith } from '../support/runner/test-with.ts'

const PAGE = 'docs/carrier.md'
const PUSH = blockUnder(PAGE, 'Pushes', 'json')
const bytesOf = (text: string) => Buffer.from(text)

test('the relay reads the same entry from the push and from the answer in docs/carrier.md', () => {
  const pushed = parseWebhookEvent(bytesOf(PUSH), null)
  const asked = { asked: 'AB123456789SE', language: 'en', contentLanguage: null, askedAtMs: 0 }
  const polled = parseAllAnswer(bytesOf(blockUnder(PAGE, 'Questions', 'json')), asked)
  if (!pushed.ok || !polled.ok) throw new Error('an example cannot be read')
  const { sighting, trackingIds, textsDropped } = pushed.observation
  const { sightings, skipped, extra } = polled.observation
  expect([textsDropped, polled.observation.textsDropped, skipped, extra]).toEqual([0, 0, 0, []])
  expect(sightings).toEqual([{ ...sighting, source: 'poll', distributionType: null }])
  expect(polled.observation).toMatchObject({ trackingIds, distributionType: sighting.distributionType })
})

test('a push needs the members that docs/carrier.md calls required, and no other members', () => {
  const event: unknown = JSON.parse(PUSH)
  const members = Object.entries(event ?? {})
  const isNeeded = (name: string) => {
    const others = Object.fromEntries(members.filter(([other]) => other !== name))
    return !parseWebhookEvent(bytesOf(JSON.stringify(others)), null).ok
  }
  expect(members.map(([name]) => name).filter(isNeeded)).toEqual(['status', 'detailedStatus', 'eventTime', 'trackingIds'])
})

test('the relay accepts the token of docs/carrier.md', () => {
  const [, answer] = fencedBlocks(PAGE).filter(({ heading, language }) => heading === 'Tokens' && language === 'json')
  expect(parseTokenAnswer(bytesOf(answer?.text ?? ''))).toMatch(/^eyJ/)
})

testWith(
  'bash',
  'curl',
  'openssl',
)('the lines of docs/carrier.md run the example config against the sandbox and send a push', async () => {
  const { folder, path } = checkoutOfTest()
  const [open, internal, sandbox] = [await freePort(), await freePort(), await freePort()]
  const own = (command: string) => {
    const ports = command.replaceAll('8080', `${open}`).replaceAll('8090', `${sandbox}`)
    if (command.startsWith('sed '))
      return `${ports}; sed -i 's/port: 8080/port: ${open}/; s/port: 8081/port: ${internal}/' config/trial.yaml`
    // A reader would type the next line once pushes come, so wait for them.
    const pushed = `curl -s http://127.0.0.1:${sandbox}/sandbox/stats | grep -q '"accepted":[1-9]'`
    if (command.includes('-- sandbox')) return `${ports}\nuntil ${pushed}; do sleep 0.1; done`
    return ports
  }
  writeFileSync(join(folder, 'push.json'), PUSH.replace('2026-03-01T10:00:00.250Z', new Date().toISOString()))
  const env = { PATH: path, HOME: folder, RELAY_URL: `http://127.0.0.1:${internal}` }
  const typed = await typeInShell(documentedCommands(PAGE, 'sandbox').map(own), { cwd: folder, env })
  const outputOf = (part: string) => typed.find(({ command }) => command.includes(part))?.output ?? ''
  expect(failedOf(typed).filter(({ command }) => command !== 'wait')).toEqual([])
  expect(outputOf('check')).toMatch(/^ok +credentials/m)
  expect(outputOf("curl -sS -w '\\n' http")).toMatch(/"accepted":[1-9]/)
  expect(outputOf('relay -- verify')).toContain('matches')
  expect(outputOf('/webhooks/status -H')).toBe('200\n')
  expect(outputOf('relay -- inbox')).toContain('recorded')
  expect(readdirSync(join(folder, 'data')).filter((name) => name.startsWith('trial'))).toEqual([])
  expect(existsSync(join(folder, 'config', 'trial.yaml'))).toBe(false)
})
