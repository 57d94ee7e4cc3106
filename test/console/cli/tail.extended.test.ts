import { spawn } from 'node:child_process'
import { expect, test, vi } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { receiverOfTest } from '../../support/network/webhook-receiver.ts'
import { push } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { commandsOf, operatorEnv } from '../../support/relay/run-command.ts'
import { shipped } from '../../support/runner/shipped.ts'
import { ownGroup, tieToTest } from '../../support/runner/tied-process.ts'

const SECTIONS = { delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1h'] } }
const PATIENT = { timeout: 60_000 }

/** Starts a command that runs until it is interrupted. */
function start(relay: { readonly internalUrl: string }, ...args: readonly string[]) {
  const { args: launch, env } = shipped()
  const child = tieToTest(
    spawn(process.execPath, [...launch, 'tail', ...args], {
      ...ownGroup,
      env: { ...env, ...operatorEnv(relay) },
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  let said = ''
  child.stdout.on('data', (chunk) => {
    said += String(chunk)
  })
  const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)))
  return { said: () => said, ended, interrupt: () => child.kill('SIGINT') }
}

test('tail shows the last events and then new ones, and Ctrl-C ends it with 0', async () => {
  const relay = await relayOfTest(SECTIONS)
  for (const id of ['74000001', '74000002', '74000003']) await push(relay.publicUrl, pushBody({ trackingIds: [id] }))
  const tail = start(relay, '-n', '2')
  await vi.waitFor(() => expect(tail.said()).toMatch(/^2 {2}entry .*74000002 .*TerminalArrived.*\n3 .*74000003 .*\n$/), PATIENT)
  await push(relay.publicUrl, pushBody({ trackingIds: ['74000004'] }))
  await vi.waitFor(() => expect(tail.said()).toMatch(/\n4 {2}entry +74000004 /), PATIENT)
  tail.interrupt()
  expect(await tail.ended).toBe(0)
})

test('tail deliveries shows each new state of deliveries to the named endpoint', async () => {
  const receiver = await receiverOfTest()
  const relay = await relayOfTest(SECTIONS)
  const run = commandsOf(relay)
  await run('endpoints', 'add', 'shop', receiver.url)
  await run('endpoints', 'add', 'other', receiver.url)
  const tail = start(relay, 'deliveries', '--endpoint', 'shop', '--json')
  await push(relay.publicUrl, pushBody({ trackingIds: ['74000005'] }))
  const told = (): unknown[] =>
    tail
      .said()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  await vi.waitFor(() => expect(told().at(-1)).toMatchObject({ endpoint: { name: 'shop' }, state: 'delivered' }), PATIENT)
  expect(told().every((one) => JSON.stringify(one).includes('"shop"'))).toBe(true)
  tail.interrupt()
  expect(await tail.ended).toBe(0)
})

test('`tail` and `tail deliveries` refuse each other’s options, and wrong arguments', async () => {
  const run = commandsOf({ internalUrl: 'http://127.0.0.1:9' })
  for (const args of [['--endpoint', 'shop'], ['deliveries', '--after', '1'], ['parcels']])
    expect(await run('tail', ...args)).toMatchObject({ code: 2, stdout: '' })
})
