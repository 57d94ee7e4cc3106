import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { sandboxCommand } from '../../../src/trial/sandbox.command.ts'
import { tokenOf } from '../../support/network/spec-client.ts'
import { expectedSignature, startWebhookReceiver } from '../../support/network/webhook-receiver.ts'
import { ownGroup, tieToTest } from '../../support/runner/tied-process.ts'
import { parsed } from './sandbox-fixture.ts'

const command = fileURLToPath(new URL('../../../src/trial/sandbox.command.ts', import.meta.url))

/** Starts the command as a separate process, and waits for the line with its address. */
async function started(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const script = `import { sandboxCommand } from ${JSON.stringify(command)}; await sandboxCommand().parseAsync(process.argv.slice(1), { from: 'user' })`
  const child = tieToTest(
    spawn(process.execPath, ['--input-type=module', '-e', script, '--', '--port', '0', ...args], {
      ...ownGroup,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  const lines: string[] = []
  const reader = createInterface(child.stdout).on('line', (line) => lines.push(line))
  await Promise.race([once(reader, 'line'), once(child, 'exit')])
  return {
    lines,
    url: /http:\/\/[\d.]+:\d+/.exec(lines[0] ?? '')?.[0] ?? '',
    stop: async (signal: NodeJS.Signals) => {
      const exited = once(child, 'exit')
      child.kill(signal)
      return exited
    },
  }
}

const control = async (url: string, path: string, body?: object): Promise<Readonly<Record<string, unknown>>> => {
  const answer = await fetch(`${url}/sandbox/${path}`, body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) })
  expect([path, answer.status]).toEqual([path, 200])
  return parsed(await answer.text())
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  'the command says where it listens, is controlled over HTTP, and ends with 0 on %s',
  async (signal) => {
    await using receiver = await startWebhookReceiver()
    const flags = ['--paused', '--parcels', '10', '--seed', '7', '--loss', '0.2', '--username', 'anna', '--password', 'lösen']
    const sandbox = await started(flags, { SANDBOX_SHARED_KEY: 'key-from-the-environment' })
    try {
      expect(sandbox.lines).toEqual([expect.stringContaining(`listening on ${sandbox.url}`)])
      expect(await tokenOf({ baseUrl: sandbox.url, username: 'anna', password: 'lösen' })).not.toBe('')
      await control(sandbox.url, 'webhooks', { urls: [receiver.url] })
      expect(await control(sandbox.url, 'faults', { duplicates: 0.5 })).toMatchObject({ loss: 0.2, duplicates: 0.5 })
      await control(sandbox.url, 'finish', {})
      const { pushes, tokensIssued, tally, time } = await control(sandbox.url, 'stats')
      expect(pushes).toMatchObject({ sent: receiver.pushes.length, accepted: receiver.pushes.length, waiting: 0 })
      expect([tokensIssued, time]).toEqual([1, expect.objectContaining({ finished: true })])
      const { parcels, tally: worldTally } = await control(sandbox.url, 'world')
      expect(parcels).toHaveLength(10)
      expect(worldTally).toEqual(tally)
      for (const { body, headers } of receiver.pushes)
        expect(headers['x-service-hmac-sha256']).toBe(expectedSignature(body, 'key-from-the-environment'))
      expect(receiver.pushes.length).toBeGreaterThan(0)
    } finally {
      expect(await sandbox.stop(signal)).toEqual([0, null])
    }
    await expect(fetch(sandbox.url)).rejects.toThrow()
  },
)

test('with --speed the parcels advance by themselves, and no entry is in the future', async () => {
  await using receiver = await startWebhookReceiver()
  const sandbox = await started(['--parcels', '3', '--speed', '300000', '--webhook-url', receiver.url, '--json'])
  try {
    expect(parsed(sandbox.lines[0] ?? '')).toEqual({ url: sandbox.url })
    await expect.poll(async () => (await control(sandbox.url, 'stats')).time).toMatchObject({ finished: true })
    await control(sandbox.url, 'settle', {})
    expect(receiver.pushes.length).toBeGreaterThanOrEqual(18)
    for (const { body } of receiver.pushes) expect(Date.parse(String(parsed(body.toString()).eventTime))).toBeLessThanOrEqual(Date.now())
  } finally {
    expect(await sandbox.stop('SIGTERM')).toEqual([0, null])
  }
})

test('the control API adds parcels and scans, and says what is wrong with a request', async () => {
  const sandbox = await started(['--parcels', '0', '--speed', '0'])
  const refused = async (path: string, body: object) =>
    (await fetch(`${sandbox.url}/sandbox/${path}`, { method: 'POST', body: JSON.stringify(body) })).status
  try {
    await control(sandbox.url, 'parcels', { trackingNumber: 'AB123456789SE', trackingIds: ['370000000000000001'] })
    await control(sandbox.url, 'scan', {
      trackingNumber: 'AB123456789SE',
      status: 'TerminalArrived',
      detailedStatus: 'ArrivedT1',
      location: 'Åre',
    })
    await control(sandbox.url, 'advance', { seconds: 60 })
    const { parcels } = await control(sandbox.url, 'world')
    expect(parcels).toEqual([expect.objectContaining({ entries: 1, trackingIds: ['370000000000000001'] })])
    expect(await refused('parcels', { trackingNumber: 'AB123456789SE', trackingIds: ['3700'] })).toBe(400)
    expect(await refused('scan', { trackingNumber: 'XX000000000SE', status: 'Created' })).toBe(400)
    expect(await refused('faults', { loss: 2 })).toBe(400)
    expect(await refused('webhooks', { urls: ['ftp://127.0.0.1/'] })).toBe(400)
    expect(await refused('unheard-of', {})).toBe(404)
  } finally {
    await sandbox.stop('SIGTERM')
  }
})

test('a text is pushed unchanged over HTTP, signed with the shared key or another one', async () => {
  await using receiver = await startWebhookReceiver()
  receiver.answer((nth) => (nth === 0 ? 200 : 401))
  const sandbox = await started(['--parcels', '0', '--speed', '0', '--webhook-url', receiver.url], { SANDBOX_SHARED_KEY: 'the-right-key' })
  try {
    const [right, wrong] = [
      await control(sandbox.url, 'push', { body: '{"status":' }),
      await control(sandbox.url, 'push', { body: '{}', sharedKey: 'another-key' }),
    ]
    expect([right.answers, wrong.answers]).toMatchObject([[{ url: receiver.url, status: 200 }], [{ status: 401 }]])
    const keys = ['the-right-key', 'another-key']
    for (const [nth, { body, headers }] of receiver.pushes.entries())
      expect(headers['x-service-hmac-sha256']).toBe(expectedSignature(body, keys[nth] ?? ''))
    expect(receiver.pushes.map(({ body }) => body.toString())).toEqual(['{"status":', '{}'])
    for (const order of [{}, { body: 1 }, { body: '', sharedKey: '' }]) {
      const answer = await fetch(`${sandbox.url}/sandbox/push`, { method: 'POST', body: JSON.stringify(order) })
      expect(answer.status).toBe(400)
    }
  } finally {
    await sandbox.stop('SIGTERM')
  }
})

test('the help names every flag and every path of the control API', () => {
  let help = ''
  sandboxCommand()
    .configureOutput({
      writeOut: (text) => {
        help += text
      },
    })
    .outputHelp()
  for (const part of ['--loss', '--number-only', 'SANDBOX_SHARED_KEY', 'POST /sandbox/finish', 'GET /sandbox/world', 'wholeSecondPulls'])
    expect(help).toContain(part)
})

test.each([
  ['--loss', '2'],
  ['--port', '99999'],
  ['--delay', 'soon'],
  ['--webhook-url', 'shop.internal'],
  ['--mix', 'odd=1'],
])('%s %s is refused', async (flag, value) => {
  const command = sandboxCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
  await expect(command.parseAsync([flag, value], { from: 'user' })).rejects.toMatchObject({ code: 'commander.invalidArgument' })
})
