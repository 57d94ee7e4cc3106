import type { DemoReplica } from './replicas.ts'

/** The hashes of these passwords are in config/demo.yaml. */
export const SHOP = { username: 'shop', password: 'shop-demo-password' } as const
export const ADMIN = { username: 'admin', password: 'admin-demo-password' } as const

export interface PushCounts {
  /** The number of stored pushes, duplicates included. */
  readonly received: number
  readonly duplicates: number
}

export interface ReplicaNews {
  readonly name: string
  readonly isRunning: boolean
  readonly pushes: PushCounts
  /** The names of its present roles, such as `poller`. */
  readonly roles: readonly string[]
}

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
    async order(trackingNumber: string, reference: string) {
      await next()?.order(trackingNumber, reference)
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
    async order(trackingNumber: string, reference: string): Promise<void> {
      const response = await send('PUT', `/relay/parcels/${trackingNumber}`, { reference })
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
