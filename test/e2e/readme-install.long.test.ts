import { spawn } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { verify } from '@node-rs/argon2'
import { afterAll, expect, onTestFinished, vi } from 'vitest'
import { signBody } from '../../src/core/domain/ingest/signature.ts'
import { freePort } from '../../src/trial/demo/postgres/throwaway-server.ts'
import { closeOpened, openCarrier } from '../core/carrier/carrier-double.ts'
import { checkoutOfTest } from '../support/docs/checkout.ts'
import { documentedCommands } from '../support/docs/shell-session.ts'
import { pushBody } from '../support/history/builders.ts'
import { ADMIN, CARRIER_LOGIN, logIn, SHOP } from '../support/relay/relay.ts'
import { testWith } from '../support/runner/test-with.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'

afterAll(closeOpened)

const PROMPT = 'next> '
const CTRL_C = '\u0003'

/** Opens a shell on a terminal. Its programs are in process groups of their own, so killing the shell does not end them, but Ctrl-C does. */
function openTerminal({ cwd, path }: { readonly cwd: string; readonly path: string }) {
  const env = { PATH: path, HOME: cwd, PS1: PROMPT, TERM: 'dumb' }
  const terminal = tieToTest(
    spawn('script', ['-qfec', 'bash --noprofile --norc -i', '/dev/null'], { ...ownGroup, cwd, env, stdio: 'pipe' }),
  )
  let shown = ''
  terminal.stdout.on('data', (chunk: Buffer) => {
    shown += chunk.toString()
  })
  const type = (text: string) => terminal.stdin.write(text)
  const until = async (pattern: RegExp) => {
    await vi.waitFor(() => expect(shown).toMatch(pattern))
    const seen = shown
    shown = ''
    return seen
  }
  return { type, until, terminal }
}

testWith('bash', 'script')('the steps of the README, pasted line by line, start a relay that accepts a signed push', async () => {
  const carrier = await openCarrier()
  const { folder, path } = checkoutOfTest()
  const [open, internal] = [await freePort(), await freePort()]
  const [install = '', copy = '', ...steps] = documentedCommands('README.md', 'install')
  const edit = `sed -i 's#https://carrier.example#${carrier.url}#; s/username: acme/username: ${CARRIER_LOGIN.username}/; s/port: 8080/port: ${open}/; s/port: 8081/port: ${internal}/' config/relay.yaml`
  const { type, until, terminal } = openTerminal({ cwd: folder, path })
  onTestFinished(async () => {
    type(CTRL_C)
    if (terminal.exitCode !== null) return
    const ended = new Promise((done) => terminal.once('exit', done))
    terminal.kill('SIGKILL')
    await ended
  })
  const passwords = [CARRIER_LOGIN.password, SHOP.password, ADMIN.password]
  const said: string[] = []
  await until(/next> $/)
  for (const step of [install, copy, edit, ...steps]) {
    type(`${step}\n`)
    if (step.includes('read -rs')) type(`${passwords.shift()}\n`)
    if (step.includes('hash-password')) {
      const password = passwords.shift()
      for (const question of [/Password: $/, /Again: $/]) {
        await until(question)
        type(`${password}\n`)
      }
    }
    said.push(await until(step.startsWith('npm start') ? /"relay ready"/ : /next> $/))
  }
  expect(said.join('\n')).toMatch(/^ok +credentials/m)
  const secrets = readFileSync(join(folder, 'relay.env'), 'utf8')
  const secretOf = (name: string) => new RegExp(`^${name}='(.*)'$`, 'm').exec(secrets)?.[1] ?? ''
  expect(statSync(join(folder, 'relay.env')).mode & 0o777).toBe(0o600)
  expect(await verify(secretOf('RELAY_ADMIN_PASSWORD_HASH'), ADMIN.password)).toBe(true)
  expect(await logIn(`http://127.0.0.1:${internal}`, SHOP)).not.toBe('')
  const body = pushBody()
  const headers = { 'x-service-hmac-sha256': signBody(Buffer.from(body), secretOf('RELAY_SHARED_KEY')) }
  expect((await fetch(`http://127.0.0.1:${open}/webhooks/status`, { method: 'POST', body, headers })).status).toBe(200)
  type(CTRL_C)
  await until(/"relay stopped"/)
})
