import { fail } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json, openCarrier } from '../core/carrier/carrier-double.ts'
import { expectedSignature } from '../support/network/webhook-receiver.ts'
import { inboxIn } from '../support/relay/inbox.ts'
import { ADMIN, ask, logIn, push, type Sections, SHARED_KEY, startTestRelay } from '../support/relay/relay.ts'

/** The carrier's answer for one identifier in one language: the body of a 200, or null for a 404. */
type Say = (language: string) => Buffer | null

export interface Told {
  readonly statuses: readonly Readonly<Record<string, unknown>>[]
  readonly trackingIds: readonly string[]
  readonly distributionType: string
}

const WEBHOOK = '/webhooks/status'
/** These settings allow no scheduled polls and any number of failures, so that the tests decide what happens. */
const SECTIONS: Readonly<Record<string, object>> = {
  poll: { cron: '0 0 1 1 *' },
  upstream: { timeout: '1s', ratePerSecond: 1000 },
  limits: { failuresPerMinute: 1_000_000, unknownPerMinute: 1_000_000 },
}

function sectionsWith(given: Sections): Sections {
  const own = Object.entries(SECTIONS).map(([name, section]) => [name, { ...section, ...objectOf(given[name]) }] as const)
  return { ...given, ...Object.fromEntries(own) }
}

function objectOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {}
}

/** Opens a carrier whose answers the test sets, and that can be down. */
async function openToldCarrier() {
  const says = new Map<string, Say>()
  let isDown = false
  let latency: Promise<void> = Promise.resolve()
  const status = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    await latency
    if (isDown) return void request.socket.destroy()
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://carrier')
    const identifier = pathname.split('/')[3] ?? ''
    const body = says.get(identifier)?.(searchParams.get('language') ?? '') ?? null
    if (body === null) json(response, 404, '{}')
    else json(response, 200, body.toString())
  }
  const { url, asked, close } = await openCarrier({ status: (request, response) => void status(request, response) })
  return {
    url,
    says,
    asked,
    close,
    callsAbout: (identifier: string) => asked.urls.filter((target) => target.includes(`/${identifier}/`)).length,
    setDown(down: boolean) {
      isDown = down
    },
    wait(promise: Promise<void>) {
      latency = promise
    },
  }
}

/** Starts a relay as in production, with a carrier and a view of the store. The caller stops it. */
export async function startWorld(given: Sections = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-faults-'))
  const carrier = await openToldCarrier()
  const relay = await startTestRelay(folder, carrier.url, sectionsWith(given))
  const inbox = inboxIn(relay.databasePath)
  const [token, adminToken] = await Promise.all([logIn(relay.internalUrl), logIn(relay.internalUrl, ADMIN)])
  const metrics = async () => await (await fetch(`${relay.internalUrl}/metrics`)).text()
  return {
    ...relay,
    carrier,
    inbox,
    token,
    publicPort: Number(new URL(relay.publicUrl).port),
    internalPort: Number(new URL(relay.internalUrl).port),
    push: (body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}) => push(relay.publicUrl, body, headers),
    get: (path: string) => ask(relay.internalUrl, token, path),
    getAsAdmin: (path: string) => ask(relay.internalUrl, adminToken, path),
    async all(identifier: string, language = 'en'): Promise<Told> {
      const response = await ask(relay.internalUrl, token, `/v1/status/${identifier}/all?language=${language}`)
      if (response.status !== 200) return fail(`${identifier}: ${response.status} ${await response.text()}`)
      const told: unknown = await response.json()
      return isTold(told) ? told : fail('no history')
    },
    /** Makes the relay ask the carrier now, as an operator can, and resolves with the status of the answer. */
    async refresh(identifier: string): Promise<number> {
      const headers = { authorization: `Bearer ${adminToken}` }
      return (await fetch(`${relay.internalUrl}/relay/parcels/${identifier}/refresh`, { method: 'POST', headers })).status
    },
    orderWatch: (identifier: string) =>
      fetch(`${relay.internalUrl}/relay/parcels/${identifier}/watch`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${adminToken}` },
      }),
    /** Returns the value of a metric, or 0 if it does not exist. `name` includes the labels as they are printed. */
    async metric(name: string): Promise<number> {
      const line = (await metrics()).split('\n').find((text) => text.startsWith(`${name} `))
      return line === undefined ? 0 : Number(line.slice(name.length))
    },
    async stop() {
      await relay.stop()
      await carrier.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export type World = Awaited<ReturnType<typeof startWorld>>

function isTold(value: unknown): value is Told {
  return typeof value === 'object' && value !== null && 'statuses' in value && Array.isArray(value.statuses) && 'trackingIds' in value
}

/** Computes a signature without the relay's code, from the specification alone. */
export function signed(body: string | Uint8Array, key: string = SHARED_KEY): string {
  return expectedSignature(Buffer.from(body), key)
}

/** Returns the parts of a raw request with `Host` and the given headers, and no others. */
export function rawRequest(method: string, headers: readonly string[], body: string | Uint8Array = '', target = WEBHOOK) {
  return [`${method} ${target} HTTP/1.1\r\n${['Host: relay', ...headers].join('\r\n')}\r\n\r\n`, body] as const
}

/** Returns the code in the `type` of a problem. */
export async function problemOf(response: Response): Promise<unknown> {
  const problem: unknown = await response.json()
  if (typeof problem !== 'object' || problem === null || !('type' in problem)) return null
  return String(problem.type).replace('urn:parcel-relay:error:', '')
}

export async function eventually(holds: () => Promise<boolean>, withinMs = 60_000): Promise<void> {
  const giveUpAtMs = performance.now() + withinMs
  while (!(await holds())) {
    if (performance.now() > giveUpAtMs) throw new Error('the condition did not hold in time')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
