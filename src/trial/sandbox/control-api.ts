import { type Answer, answerOf, type Call, errorAnswer, memberOf } from './answer.ts'
import type { Sandbox } from './handle.ts'
import { parseParcelOrder, parsePushOrder, parseScanOrder } from './runtime-scan.ts'

type Route = (sandbox: Sandbox, call: Call) => unknown

/** The routes of the control API. `about`: the purpose of a route, which `--help` prints. */
export const controlRoutes: readonly { readonly route: string; readonly about: string; readonly run: Route }[] = [
  { route: 'GET /sandbox/world', about: 'all parcels in their current state, their pushes, and the tally of hard cases', run: world },
  {
    route: 'GET /sandbox/stats',
    about: 'calls by path and status, tokens, pushes by fate and answer, the tally, the simulated time',
    run: (s) => s.stats(),
  },
  { route: 'GET /sandbox/faults', about: 'the faults in force', run: (sandbox) => sandbox.faults() },
  { route: 'POST /sandbox/faults', about: 'change faults: {"loss":0.1,"serverErrors":0.5}', run: changeFaults },
  { route: 'POST /sandbox/webhooks', about: 'set the push addresses: {"urls":["http://..."]}', run: changeWebhooks },
  { route: 'POST /sandbox/resume', about: 'start the clock (after --paused)', run: (sandbox) => sandbox.resume() },
  { route: 'POST /sandbox/advance', about: 'advance the clock by {"seconds":N}, then wait for the pushes', run: advance },
  {
    route: 'POST /sandbox/finish',
    about: 'advance the clock to the last event, then wait for the pushes',
    run: (sandbox) => sandbox.finish(),
  },
  { route: 'POST /sandbox/settle', about: 'wait for pushes under way', run: (sandbox) => sandbox.settle() },
  { route: 'POST /sandbox/parcels', about: 'add a parcel: {"trackingNumber":"AB1...SE","trackingIds":["37..."]}', run: addParcel },
  { route: 'POST /sandbox/scan', about: 'add a scan: {"trackingNumber":"AB1...SE","status":"...","atMs"?:N,"location"?:"..."}', run: scan },
  {
    route: 'POST /sandbox/push',
    about: 'push any text, signed; with another key its signature is wrong: {"body":"...","sharedKey"?:"..."}',
    run: push,
  },
  { route: 'POST /sandbox/revoke-tokens', about: 'revoke all tokens issued so far', run: (sandbox) => sandbox.revokeTokens() },
]

function world(sandbox: Sandbox): unknown {
  return { tally: sandbox.world.tally, parcels: sandbox.world.parcels() }
}

async function changeFaults(sandbox: Sandbox, call: Call): Promise<unknown> {
  return sandbox.setFaults(await objectBody(call))
}

async function changeWebhooks(sandbox: Sandbox, call: Call): Promise<void> {
  const urls = memberOf(await call.body(), 'urls')
  const isText = (url: unknown): url is string => typeof url === 'string'
  if (!Array.isArray(urls) || !urls.every(isText)) throw new RangeError('urls must be an array of http addresses')
  sandbox.setWebhookUrls(urls)
}

async function advance(sandbox: Sandbox, call: Call): Promise<void> {
  const seconds = memberOf(await call.body(), 'seconds')
  if (typeof seconds !== 'number' || !(seconds >= 0)) throw new RangeError('seconds must be a number of at least 0')
  await sandbox.advance(seconds * 1000)
}

async function addParcel(sandbox: Sandbox, call: Call): Promise<void> {
  sandbox.addParcel(parseParcelOrder(await call.body()))
}

async function scan(sandbox: Sandbox, call: Call): Promise<void> {
  const body = await call.body()
  const trackingNumber = memberOf(body, 'trackingNumber')
  if (typeof trackingNumber !== 'string') throw new RangeError('trackingNumber must be that of a parcel in this sandbox')
  sandbox.scan(trackingNumber, parseScanOrder(body))
}

async function push(sandbox: Sandbox, call: Call): Promise<unknown> {
  return { answers: await sandbox.push(parsePushOrder(await call.body())) }
}

async function objectBody(call: Call): Promise<object> {
  const body = await call.body()
  if (typeof body !== 'object' || body === null) throw new RangeError('the body must be a JSON object')
  return body
}

/** Answers a call to the control API, which tests and demos use without a token. Null: the path does not begin with `/sandbox/`. */
export async function controlAnswer(sandbox: Sandbox, call: Call): Promise<Answer | null> {
  if (!call.path.startsWith('/sandbox/')) return null
  const found = controlRoutes.find(({ route }) => route === `${call.method} ${call.path}`)
  if (found === undefined) return errorAnswer(404, `Only ${controlRoutes.map(({ route }) => route).join(', ')}`)
  try {
    return answerOf(200, (await found.run(sandbox, call)) ?? { done: true })
  } catch (error) {
    if (error instanceof RangeError) return errorAnswer(400, error.message)
    throw error
  }
}
