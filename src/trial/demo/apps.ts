import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { Sandbox } from '../sandbox/control-api.ts'
import type { Happening, Picture, PushCounts, ReplicaNews } from './picture.ts'
import type { DemoReplica } from './start-replicas.ts'

/** An app to which the relay pushes events. It relies only on its shared key and the documented headers. */
export type Subscriber = Awaited<ReturnType<typeof startSubscriber>>

const BODY_BYTES_MAX = 1024 * 1024
/** At most this many event ids are remembered, to bound the memory. */
const REMEMBERED_MAX = 100_000

export async function startSubscriber(host: string, port: number, sharedKey: string) {
  const seen = new Set<string>()
  const watchdogs = { stalled: 0, recovered: 0 }
  let news: Happening[] = []
  let wrong = 0

  /** Takes a push, and returns the status to answer. The relay may send an event twice, so the id decides whether an event is new. */
  function take(body: Buffer, headers: IncomingMessage['headers']): number {
    const expected = createHmac('sha256', sharedKey).update(body).digest()
    const given = Buffer.from(String(headers['x-service-hmac-sha256']), 'base64')
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      wrong += 1
      return 401
    }
    const id = String(headers['webhook-id'])
    if (seen.has(id)) return 200
    if (seen.size < REMEMBERED_MAX) seen.add(id)
    const told = watchdogNews(body.toString())
    if (told === null) news.push({ kind: 'relayed', ...presentEvent(body.toString()) })
    else {
      watchdogs[told.kind] += 1
      news.push(told)
    }
    return 200
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= BODY_BYTES_MAX) chunks.push(chunk)
      else request.destroy()
    })
    request.on('end', () => void response.writeHead(take(Buffer.concat(chunks), request.headers)).end())
  }).listen(port, host)
  await once(server, 'listening')

  return {
    url: `http://${host}:${port}/events`,
    /** Returns the new events since the last call. */
    takeNews(): readonly Happening[] {
      const taken = news
      news = []
      return taken
    },
    /** Returns the number of distinct events with a valid signature, without those of watchdogs, and the number of pushes with a wrong one. */
    counts: (): Picture['subscriber'] => ({ events: seen.size - watchdogs.stalled - watchdogs.recovered, wrong, ...watchdogs }),
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** Null: the event is an entry. */
function watchdogNews(body: string): (Happening & { readonly kind: 'stalled' | 'recovered' }) | null {
  const event: unknown = JSON.parse(body)
  const say = (of: unknown, name: string): unknown => (typeof of === 'object' && of !== null ? Reflect.get(of, name) : undefined)
  const name = say(event, 'event')
  if (name !== 'parcel.stalled' && name !== 'parcel.recovered') return null
  const ids = say(say(event, 'parcel'), 'identifiers')
  const kind = name === 'parcel.stalled' ? 'stalled' : 'recovered'
  return { kind, trackingNumber: Array.isArray(ids) ? String(ids[0]) : '', about: `rule ${String(say(event, 'rule'))}, signature valid` }
}

function presentEvent(body: string): Pick<Happening, 'trackingNumber' | 'about'> {
  const event: unknown = JSON.parse(body)
  const say = (name: string): unknown => (typeof event === 'object' && event !== null ? Reflect.get(event, name) : undefined)
  const ids = say('trackingIds')
  const place = say('location')
  return {
    trackingNumber: Array.isArray(ids) ? String(ids[0]) : '',
    about: `${String(say('detailedStatus'))}${typeof place === 'string' ? ` in ${place}` : ''}, signature valid`,
  }
}

/** Apps whose webhooks are in trouble, and an app that pages the operator on call. They share a listener, and each has its own path. */
export type TroubledApps = Awaited<ReturnType<typeof startTroubledApps>>

interface Answer {
  readonly status: number
  readonly body?: string
}

/** The busy app refuses every fourth event, but only at its first attempt. */
const REFUSED_ONCE_EVERY = 4

export async function startTroubledApps(host: string, port: number) {
  const apps: Readonly<Record<string, (eventId: string) => Answer>> = {
    '/billing': () => ({ status: 503, body: 'billing-db-2: no space left on device' }),
    '/warehouse': busyApp(),
    '/old-shop': () => ({ status: 410, body: 'The old shop has closed. The new one asks the relay itself.' }),
    '/on-call': () => ({ status: 204 }),
  }
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      const { status, body } = apps[request.url ?? '']?.(String(request.headers['webhook-id'])) ?? { status: 404 }
      response.writeHead(status, { 'content-type': 'text/plain' }).end(body)
    })
  }).listen(port, host)
  await once(server, 'listening')
  const url = `http://${host}:${port}`
  return {
    onCallUrl: `${url}/on-call`,
    /** The webhooks of the apps in trouble, for an operator to add. */
    webhooks: ['billing', 'warehouse', 'old-shop'].map((name) => ({ name, url: `${url}/${name}` })),
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

function busyApp(): (eventId: string) => Answer {
  const refused = new Set<string>()
  let events = 0
  return (eventId) => {
    if (refused.delete(eventId)) return { status: 200 }
    events += 1
    if (events % REFUSED_ONCE_EVERY > 0) return { status: 200 }
    refused.add(eventId)
    return { status: 500, body: 'lock wait timeout exceeded; try restarting the transaction' }
  }
}

/** A parcel number that is watched, although the carrier has no such parcel. */
const MISTYPED = 'AB123456798SE'
/** A key that the relay does not know. */
const OTHER_KEY = 'key-of-the-test-system-of-the-carrier'
const WRONGLY_SIGNED = 5
/** How many pushes have a time in a format that the carrier never uses. */
const REFORMATTED = 3
/** The length in bytes of the push that is cut off. */
const CUT_TO = 96

/**
 * Makes realistic trouble to look at in the portal: apps refuse events, the carrier pushes bodies that are not events, some pushes are signed with
 * another key, and a watched number is mistyped. The histories of the demo's parcels stay as they are.
 */
export async function makeTrouble(carrier: Sandbox, shop: Shop, { webhooks }: TroubledApps): Promise<void> {
  for (const { name, url } of webhooks) await shop.addWebhook(name, url)
  await shop.watch(MISTYPED)
  const events = carrier.world.parcels().map(({ trackingIds }) => ({ trackingId: trackingIds[0] ?? '', text: 'At a terminal' }))
  const now = new Date().toISOString()
  const localTime = now.slice(0, 19).replace('T', ' ')
  for (const event of events.slice(0, REFORMATTED)) await carrier.push({ body: madeEvent({ ...event, eventTime: localTime }) })
  for (const event of events.slice(0, 1)) {
    const body = madeEvent({ ...event, eventTime: now })
    await carrier.push({ body: body.slice(0, CUT_TO) })
    for (let nth = 0; nth < WRONGLY_SIGNED; nth++) await carrier.push({ body, sharedKey: OTHER_KEY })
  }
}

export const ABOUT_TROUBLE = [
  'There is trouble to look at: the webhook billing fails, warehouse refuses some',
  'events at first, old-shop is gone; pushes are in quarantine, and others had a',
  `wrong signature (Inbox, Refusals); nobody knows the parcel ${MISTYPED}.`,
  'Begin with the portal, which says what to do.',
]

interface MadeEvent {
  readonly trackingId: string
  /** The time in the carrier's format or, to make trouble, in another format. */
  readonly eventTime: string
  /** The English text for consumers. */
  readonly text: string
}

/** Makes an event in the carrier's format. The sandbox carrier itself does not know this event. */
export function madeEvent({ trackingId, eventTime, text }: MadeEvent): string {
  return JSON.stringify({
    status: 'TerminalArrived',
    detailedStatus: 'ArrivedT1',
    eventTime,
    location: 'Kiruna',
    trackingIds: [trackingId],
    distributionType: 'Mailbox',
    displayToConsumer: true,
    consumerDescription: [{ value: text, languageCode: 'en' }],
    detailedStatusDescription: [{ value: `${text} (first terminal)`, languageCode: 'en' }],
  })
}

/** The hashes of these passwords are in config/demo.yaml. */
export const SHOP = { username: 'shop', password: 'shop-demo-password' } as const
export const ADMIN = { username: 'admin', password: 'admin-demo-password' } as const

/** The demo's HTTP client of the relays. It watches parcels and reads their histories, as a shop does, and adds webhooks, as an operator does. */
export type Shop = Awaited<ReturnType<typeof openShop>>

type Asked = Pick<DemoReplica, 'name' | 'pid' | 'internalUrl' | 'isRunning'>

const TIMEOUT_MS = 10_000
const DURABLE = ['recorded', 'duplicate', 'quarantined', 'expired']

export async function openShop(replicas: readonly Asked[]) {
  const clients = await Promise.all(replicas.map(openClient))
  const running = () => clients.filter((_, at) => replicas[at]?.isRunning() === true)
  const news = new Map<string, ReplicaNews>()
  let turn = 0
  const next = () => {
    const among = running()
    return among[turn++ % among.length]
  }
  return {
    async watch(trackingNumber: string) {
      await next()?.watch(trackingNumber)
    },
    /** Says to which order a parcel belongs. The relay watches it from then on. */
    async order(trackingNumber: string, reference: string, labels: Readonly<Record<string, string>>) {
      await next()?.order(trackingNumber, reference, labels)
    },
    addWebhook: async (name: string, url: string) => await running()[0]?.addWebhook(name, url),
    /** Returns each running relay's history of the parcel (the body of `/all`, in English); null: the relay has none, or failed to answer. */
    histories: async (trackingNumber: string): Promise<readonly (string | null)[]> =>
      await Promise.all(running().map((one) => one.history(trackingNumber))),
    async news(): Promise<readonly ReplicaNews[]> {
      for (const [at, { name, isRunning }] of replicas.entries()) {
        const before = news.get(name) ?? { pushes: { received: 0, duplicates: 0 }, roles: [] }
        // For a replica that has ended or does not answer, keep the counts of its last answer.
        const now = isRunning() ? await clients[at]?.news().catch(() => null) : { roles: [] }
        news.set(name, { name, ...before, ...now, isRunning: isRunning() })
      }
      return [...news.values()]
    },
  }
}

async function openClient({ internalUrl, pid }: Asked) {
  const admin = await logIn(internalUrl, ADMIN)
  let token = await logIn(internalUrl, SHOP)
  const ask = (path: string, bearer: string, method = 'GET') =>
    call(`${internalUrl}${path}`, { method, headers: { authorization: `Bearer ${bearer}` } })
  const send = (method: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' }
    return call(`${internalUrl}${path}`, { method, headers, body: JSON.stringify(body) })
  }

  async function askForHistory(trackingNumber: string): Promise<string | null> {
    const path = `/v1/status/${trackingNumber}/all?language=en`
    let response = await ask(path, token)
    if (response.status === 401) {
      // The token has expired.
      token = await logIn(internalUrl, SHOP)
      response = await ask(path, token)
    }
    const body = await response.text()
    return response.ok ? body : null
  }

  return {
    async watch(trackingNumber: string): Promise<void> {
      const response = await ask(`/relay/parcels/${trackingNumber}/watch`, admin, 'PUT')
      if (!response.ok) throw new Error(`the relay did not watch ${trackingNumber}: status ${response.status}`)
      await response.arrayBuffer()
    },
    async order(trackingNumber: string, reference: string, labels: Readonly<Record<string, string>>): Promise<void> {
      const response = await send('PUT', `/relay/parcels/${trackingNumber}`, { reference, labels })
      if (!response.ok) throw new Error(`the relay did not take the order of ${trackingNumber}: status ${response.status}`)
      await response.arrayBuffer()
    },
    async addWebhook(name: string, url: string): Promise<void> {
      const response = await send('POST', '/relay/endpoints', { name, url })
      if (!response.ok) throw new Error(`the relay did not add the webhook ${name}: status ${response.status}`)
      await response.arrayBuffer()
    },
    history: (trackingNumber: string) => askForHistory(trackingNumber).catch(() => null),
    async news() {
      const metrics = await (await call(`${internalUrl}/metrics`, {})).text()
      const replicas: unknown = await (await ask('/relay/replicas', admin)).json()
      return { pushes: pushCountsIn(metrics), roles: rolesIn(replicas, pid) }
    },
  }
}

function pushCountsIn(metrics: string): PushCounts {
  const counts = [...metrics.matchAll(/^relay_pushes_received_total\{outcome="(\w+)"[^}]*\} (\d+)/gm)]
  const sum = (outcomes: readonly string[]) =>
    counts.filter(([, outcome = '']) => outcomes.includes(outcome)).reduce((total, [, , count]) => total + Number(count), 0)
  return { received: sum(DURABLE), duplicates: sum(['duplicate']) }
}

/** Returns the roles of the relay in process `pid`. The name of a relay ends with its process id. */
function rolesIn(answer: unknown, pid: number): readonly string[] {
  const member = (value: unknown, name: string): unknown =>
    typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
  const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
  const mine = list(member(answer, 'replicas')).find((one) => String(member(one, 'name')).endsWith(`/${pid}`))
  return list(member(mine, 'roles')).map(String)
}

async function logIn(internalUrl: string, login: typeof SHOP | typeof ADMIN): Promise<string> {
  const response = await call(`${internalUrl}/auth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(login),
  })
  const answer: unknown = await response.json()
  if (typeof answer !== 'object' || answer === null || !('token' in answer))
    throw new Error(`${login.username} could not log in: status ${response.status}`)
  return String(answer.token)
}

function call(address: string, init: RequestInit): Promise<Response> {
  return fetch(address, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
}
