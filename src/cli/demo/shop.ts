/** The logins of config/demo.yaml, which holds their hashes. */
export const SHOP = { username: 'shop', password: 'shop-demo-password' } as const
export const ADMIN = { username: 'admin', password: 'admin-demo-password' } as const

export interface PushCounts {
  /** Pushes with a good signature, duplicates included. */
  readonly received: number
  readonly duplicates: number
}

/** The demo's client of the relay, over HTTP: a shop that watches its parcels and reads their histories. */
export interface Shop {
  watch(trackingNumber: string): Promise<void>
  /** The relay's `all` in English; null: it has none, or failed. */
  history(trackingNumber: string): Promise<string | null>
  pushCounts(): Promise<PushCounts>
}

const TIMEOUT_MS = 10_000
const DURABLE = ['recorded', 'duplicate', 'quarantined', 'expired']

export async function openShop(internalUrl: string): Promise<Shop> {
  const admin = await logIn(internalUrl, ADMIN)
  let token = await logIn(internalUrl, SHOP)
  const ask = (path: string) => call(`${internalUrl}${path}`, { headers: { authorization: `Bearer ${token}` } })
  return {
    async watch(trackingNumber) {
      const address = `${internalUrl}/relay/parcels/${trackingNumber}/watch`
      const response = await call(address, { method: 'PUT', headers: { authorization: `Bearer ${admin}` } })
      if (!response.ok) throw new Error(`the relay did not watch ${trackingNumber}: status ${response.status}`)
      await response.arrayBuffer()
    },
    async history(trackingNumber) {
      const path = `/v1/status/${trackingNumber}/all?language=en`
      let response = await ask(path)
      if (response.status === 401) {
        // The token has expired.
        token = await logIn(internalUrl, SHOP)
        response = await ask(path)
      }
      const body = await response.text()
      return response.ok ? body : null
    },
    async pushCounts() {
      const text = await (await call(`${internalUrl}/metrics`, {})).text()
      const counts = [...text.matchAll(/^relay_pushes_received_total\{outcome="(\w+)"[^}]*\} (\d+)/gm)]
      const sum = (outcomes: readonly string[]) =>
        counts.filter(([, outcome = '']) => outcomes.includes(outcome)).reduce((total, [, , count]) => total + Number(count), 0)
      return { received: sum(DURABLE), duplicates: sum(['duplicate']) }
    },
  }
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
