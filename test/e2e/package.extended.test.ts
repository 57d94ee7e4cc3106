import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { browserOfFile } from '../support/portal/browser.ts'
import { logInOn } from '../support/portal/portal-page.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push, type RelayProcess, spawnRelay, writeConfig } from '../support/relay/relay.ts'
import { idsOfTest } from '../support/relay/relay-of-file.ts'
import { shipped } from '../support/runner/shipped.ts'

const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-package-'))
const openPage = browserOfFile()
const own = idsOfTest()
let relay: RelayProcess

/** Makes a package with `npm pack` from the build that all tests share, and unpacks it. Returns the main file. */
function installPackage(): string {
  const source = join(folder, 'source')
  mkdirSync(source)
  for (const name of ['package.json', 'README.md', 'CHANGELOG.md', 'config', 'docs']) cpSync(name, join(source, name), { recursive: true })
  cpSync(join(shipped().folder, 'dist'), join(source, 'dist'), { recursive: true })
  const packing = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder]
  const file = execFileSync('npm', packing, { cwd: source, encoding: 'utf8' }).trim()
  rmSync(source, { recursive: true })
  execFileSync('tar', ['-xzf', join(folder, file), '-C', folder])
  symlinkSync(resolve('node_modules'), join(folder, 'package', 'node_modules'))
  return join(folder, 'package', 'dist', 'main.js')
}

beforeAll(async () => {
  const config = writeConfig(folder, 'http://127.0.0.1:9', { delivery: { allowNetworks: ['127.0.0.0/8'] } })
  relay = await spawnRelay(config, {}, installPackage())
})
afterAll(async () => {
  relay.process.kill('SIGTERM')
  await relay.ended
  rmSync(folder, { recursive: true, force: true })
})

const PATHS = [
  '/',
  '/carrier',
  '/parcels',
  '/webhooks',
  '/webhooks/new',
  '/deliveries',
  '/inbox',
  '/settings',
  '/events',
  '/docs',
  '/docs/operating',
]

/** Opens a page and logs in. `complaints`: the errors and warnings of the browser. `answers`: by path. */
async function logIn() {
  const page = await openPage({ baseURL: relay.internalUrl })
  onTestFinished(() => page.context().close())
  const complaints: string[] = []
  const answers = new Map<string, readonly [status: number, type: string]>()
  page.on('console', (message) => {
    // The login has the status 401.
    if (message.text().includes('status of 401')) return
    if (['error', 'warning'].includes(message.type())) complaints.push(`${page.url()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error.message}`))
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? ''
    // When the page is left, the browser ends the requests that are still running.
    if (reason !== 'net::ERR_ABORTED') complaints.push(`${request.url()}: ${reason}`)
  })
  page.on('response', (response) => {
    // A 304 has no content type. The earlier answer for this path had it.
    if (response.status() !== 304)
      answers.set(new URL(response.url()).pathname, [response.status(), response.headers()['content-type'] ?? ''])
  })
  await logInOn(page)
  await page.getByRole('navigation', { name: 'Main' }).waitFor()
  return { page, complaints, answers }
}

async function pathOfFirst(page: Page, list: string, name: RegExp): Promise<string> {
  await page.goto(list)
  return (await page.getByRole('main').getByRole('table').getByRole('link', { name }).first().getAttribute('href')) ?? ''
}

test('the style sheet, the script and the icon of the package arrive, each with its type', async () => {
  const { answers, complaints } = await logIn()
  expect(answers.get('/assets/portal.css')).toEqual([200, 'text/css; charset=utf-8'])
  expect(answers.get('/assets/portal.js')).toEqual([200, expect.stringMatching(/^text\/javascript\b/)])
  const icon = await fetch(`${relay.internalUrl}/assets/icon.svg`)
  expect([icon.status, icon.headers.get('content-type')]).toEqual([200, expect.stringMatching(/^image\/svg\+xml\b/)])
  expect(complaints).toEqual([])
})

test('a page of each kind opens without an error or a violation of the content security policy', async () => {
  await using receiver = await startWebhookReceiver()
  const operator = await operatorOf(relay)
  const { id } = (await operator('POST', '/relay/endpoints', { name: own('shop'), url: receiver.url })).body
  const parcel = own('1001')
  for (const body of [pushBody({ trackingIds: [parcel] }), 'no JSON']) expect((await push(relay.publicUrl, body)).status).toBe(200)
  await expect.poll(() => receiver.pushes.length).toBe(1)
  const { page, complaints, answers } = await logIn()
  const paths = [
    ...PATHS,
    `/parcels/${parcel}`,
    `/webhooks/${String(id)}`,
    `/webhooks/${String(id)}/edit`,
    await pathOfFirst(page, '/deliveries', /TerminalArrived/),
    await pathOfFirst(page, '/inbox', /^Push \d+$/),
  ]
  for (const path of paths) {
    await page.goto(path)
    expect([path, answers.get(path)]).toEqual([path, [200, 'text/html; charset=utf-8']])
    await page.getByRole('heading', { level: 1 }).first().waitFor()
  }
  expect(complaints).toEqual([])
})

test('the package contains the manual, its picture and the API document', async () => {
  for (const [path, type] of [
    ['/docs', 'text/html'],
    ['/docs/operating', 'text/html'],
    ['/docs/polling.svg', 'image/svg+xml'],
    ['/openapi.json', 'application/json'],
  ] as const) {
    const answer = await fetch(relay.internalUrl + path)
    expect([path, answer.status, answer.headers.get('content-type')?.split(';')[0]]).toEqual([path, 200, type])
    expect((await answer.text()).length).toBeGreaterThan(1000)
  }
})

test('a parcel’s open page shows a new push by itself', async () => {
  const parcel = own('1001')
  await push(relay.publicUrl, pushBody({ trackingIds: [parcel] }))
  const { page, complaints } = await logIn()
  await page.goto(`/parcels/${parcel}`)
  await page.getByText('Changes show by themselves.').waitFor()
  await push(relay.publicUrl, pushBody({ trackingIds: [parcel], status: 'DeliveryStarted', location: 'Kiruna' }))
  await page.getByRole('table', { name: 'History, newest first' }).getByText('Kiruna').waitFor()
  expect(complaints).toEqual([])
})
