import { type Answer, answerOf, type Call, errorAnswer, memberOf } from './answer.ts'
import type { Faults } from './options.ts'
import { type ParcelPlan, plainScan, type Scan, uneventful } from './parcel-plan.ts'
import type { PushAttempt, PushRecord } from './pusher.ts'
import { drawFor, randomFor } from './random.ts'
import type { SandboxStats, Tally } from './stats.ts'
import { type LanguageTexts, type Texts, type Word, words } from './vocabulary.ts'
import type { ParcelNow } from './world.ts'

export interface SandboxParcel extends ParcelNow {
  /** Oldest first. */
  readonly pushes: readonly PushRecord[]
}

/** A running sandbox carrier, with access to everything it knows. */
export interface Sandbox {
  readonly url: string
  readonly world: {
    parcels(): readonly SandboxParcel[]
    /** Finds a parcel by any of its identifiers, even by one that the pull API does not know. */
    parcel(identifier: string): SandboxParcel | null
    readonly tally: Tally
  }
  stats(): SandboxStats
  faults(): Faults
  setFaults(change: Partial<Faults>): Faults
  setWebhookUrls(urls: readonly string[]): void
  revokeTokens(): void
  /** Pushes any body, even one that is not an event. Resolves with the receivers' answers. */
  push(order: PushOrder): Promise<readonly PushAttempt[]>
  /** Returns the simulated time, in epoch milliseconds. */
  now(): number
  finished(): boolean
  resume(): void
  /** Advances the clock by simulated milliseconds. Resolves when no push is waiting. */
  advance(byMs: number): Promise<void>
  /** Advances the clock to the last event. Resolves when no push is waiting. */
  finish(): Promise<void>
  /** Resolves when no push is waiting. */
  settle(): Promise<void>
  addParcel(order: ParcelOrder): void
  scan(trackingNumber: string, order: ScanOrder): void
  stop(): Promise<void>
}

/** A scan that a test requests. */
export interface ScanOrder {
  readonly status: string
  /** Default: the status. */
  readonly detailedStatus?: string
  /** Epoch milliseconds. Default: now. An earlier time makes a backdated scan. */
  readonly atMs?: number
  readonly location?: string
  readonly displayToConsumer?: boolean
  /** Appended to every text of the scan. */
  readonly note?: string
}

/** A parcel that a test requests has no entries at first. */
export interface ParcelOrder {
  readonly trackingNumber: string
  readonly trackingIds: readonly string[]
  readonly numberOnly?: boolean
}

/** The body may be any text, even one that is not an event. */
export interface PushOrder {
  readonly body: string
  /** The key that signs the push. Default: the sandbox's `sharedKey`. */
  readonly sharedKey?: string
}

function wordFor(order: ScanOrder): Word {
  const word = knownWord(order)
  return order.note === undefined ? word : { ...word, texts: withNote(word.texts, order.note) }
}

function withNote({ en, sv }: Texts, note: string): Texts {
  const noted = ({ consumer, detailed }: LanguageTexts): LanguageTexts => ({
    consumer: `${consumer} ${note}`,
    detailed: `${detailed} ${note}`,
  })
  return { ...(en === undefined ? {} : { en: noted(en) }), ...(sv === undefined ? {} : { sv: noted(sv) }) }
}

function knownWord(order: ScanOrder): Word {
  const detailedStatus = order.detailedStatus ?? order.status
  const shown = Object.values(words).find((word) => word.status === order.status && word.detailedStatus === detailedStatus)
  if (shown !== undefined) return shown
  const texts = {
    en: { consumer: `News: ${detailedStatus}`, detailed: `Scanned as ${detailedStatus}` },
    sv: { consumer: `Nytt: ${detailedStatus}`, detailed: `Skannat som ${detailedStatus}` },
  }
  return { status: order.status, detailedStatus, displayToConsumer: true, texts }
}

/** `nth`: the number of the scan among those that were requested of this sandbox. */
export function orderedScan(order: ScanOrder, trackingNumber: string, nth: number, seed: number, nowMs: number): Scan {
  const id = `${trackingNumber}/ordered-${nth}`
  const scan = plainScan(id, wordFor(order), order.atMs ?? nowMs, order.location ?? '', randomFor(seed, id))
  // If several scans have the same instant, the one that was requested last is listed first.
  const placed = { ...scan, publishedAtMs: nowMs, tie: -nth - drawFor(seed, id) }
  return order.displayToConsumer === undefined ? placed : { ...placed, displayToConsumer: order.displayToConsumer }
}

export function orderedParcel({ trackingNumber, trackingIds, numberOnly = false }: ParcelOrder): ParcelPlan {
  return { ...uneventful, trackingNumber, trackingIds, numberOnly }
}

/** Throws a RangeError that says what to write. */
function parseScanOrder(body: unknown): ScanOrder {
  const [status, detailedStatus, atMs, location, displayToConsumer, note] = [
    'status',
    'detailedStatus',
    'atMs',
    'location',
    'displayToConsumer',
    'note',
  ].map((name) => memberOf(body, name))
  if (typeof status !== 'string' || status === '') throw new RangeError('status must be a word such as TerminalArrived')
  if (atMs !== undefined && (typeof atMs !== 'number' || !Number.isSafeInteger(atMs)))
    throw new RangeError('atMs must be epoch milliseconds')
  return {
    status,
    ...(typeof detailedStatus === 'string' ? { detailedStatus } : {}),
    ...(atMs === undefined ? {} : { atMs }),
    ...(typeof location === 'string' ? { location } : {}),
    ...(typeof displayToConsumer === 'boolean' ? { displayToConsumer } : {}),
    ...(typeof note === 'string' ? { note } : {}),
  }
}

/** Throws a RangeError that says what to write. */
function parsePushOrder(order: unknown): PushOrder {
  const [body, sharedKey] = [memberOf(order, 'body'), memberOf(order, 'sharedKey')]
  if (typeof body !== 'string') throw new RangeError('body must be the text to push')
  if (sharedKey === undefined) return { body }
  if (typeof sharedKey !== 'string' || sharedKey === '') throw new RangeError('sharedKey must be a key')
  return { body, sharedKey }
}

/** Throws a RangeError that says what to write. */
function parseParcelOrder(body: unknown): ParcelOrder {
  const trackingNumber = memberOf(body, 'trackingNumber')
  const trackingIds = memberOf(body, 'trackingIds')
  if (typeof trackingNumber !== 'string' || !/^[A-Z0-9]{4,40}$/.test(trackingNumber))
    throw new RangeError('trackingNumber must look like AB123456789SE')
  const isId = (id: unknown): id is string => typeof id === 'string' && /^\d{4,40}$/.test(id)
  if (!Array.isArray(trackingIds) || trackingIds.length === 0 || !trackingIds.every(isId))
    throw new RangeError('trackingIds must be numeric strings')
  return { trackingNumber, trackingIds, numberOnly: memberOf(body, 'numberOnly') === true }
}

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
