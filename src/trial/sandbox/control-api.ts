import { type Answer, answerOf, type Call, errorAnswer, memberOf } from './carrier-api.ts'
import type { Faults } from './options.ts'
import { drawFor, eachHardCase, type HardCase, type ParcelPlan, plainScan, randomFor, type Scan, uneventful } from './parcel-plan.ts'
import type { PushAttempt, PushRecord } from './pusher.ts'
import { type LanguageTexts, shownWords, type Texts, type Word, words } from './vocabulary.ts'
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

export type Tally = Readonly<Record<HardCase, number>>

function countBy(scans: readonly Scan[], keyOf: (scan: Scan) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const scan of scans) counts.set(keyOf(scan), (counts.get(keyOf(scan)) ?? 0) + 1)
  return counts
}

const several = (counts: ReadonlyMap<string, number>): number => [...counts.values()].filter((count) => count > 1).length

const wordOf = (scan: Scan): string => JSON.stringify([scan.atMs, scan.status, scan.detailedStatus])
const identityOf = (scan: Scan): string => JSON.stringify([wordOf(scan), scan.pullLocation, scan.pushLocation])

/** Keeps only the last scan for each value of `keyOf`. */
function distinct(scans: readonly Scan[], keyOf: (scan: Scan) => string): readonly Scan[] {
  return [...new Map(scans.map((scan) => [keyOf(scan), scan])).values()]
}

function backDatedIn(scans: readonly Scan[]): number {
  let newestMs = -Infinity
  let late = 0
  for (const scan of [...scans].sort((a, b) => a.publishedAtMs - b.publishedAtMs)) {
    if (scan.atMs < newestMs) late += 1
    newestMs = Math.max(newestMs, scan.atMs)
  }
  return late
}

function tallyParcel(plan: ParcelPlan): Tally {
  const { scans } = plan
  const count = (is: (scan: Scan) => boolean): number => scans.filter(is).length
  return {
    equalInstants: several(countBy(distinct(scans, wordOf), (scan) => String(scan.atMs))),
    twoPlaces: several(countBy(distinct(scans, identityOf), wordOf)),
    equalEntries: several(countBy(scans, identityOf)),
    unknownWords: count((scan) => !shownWords.has(scan.status) || !shownWords.has(scan.detailedStatus)),
    emptyPullLocation: count((scan) => scan.pullLocation === '' && (scan.pushLocation ?? '') !== ''),
    emptyPushLocation: count((scan) => scan.pullLocation !== '' && (scan.pushLocation ?? '') === ''),
    backDated: backDatedIn(scans),
    wholeSecondPulls: count((scan) => scan.pullTime !== 'milliseconds' && scan.atMs % 1000 !== 0),
    textsChanged: plan.amendments.filter(({ kind }) => kind === 'changed').length,
    textsWithdrawn: plan.amendments.filter(({ kind }) => kind === 'withdrawn').length,
    trackingIdsAdded: plan.laterTrackingId === null ? 0 : 1,
    unknownFields: plan.extra.length > 0 && scans.some((scan) => scan.extra.length > 0) ? 1 : 0,
    numberOnly: plan.numberOnly ? 1 : 0,
    spacedBodies: plan.spacedBodies ? 1 : 0,
  }
}

/**
 * Counts the hard cases in the planned entries. The counts may differ from the requested fractions, because one case can cause another. The
 * last four members count parcels. The others count entries, instants or groups of equal entries.
 */
export function tallyWorld(plans: readonly ParcelPlan[]): Tally {
  const tallies = plans.map(tallyParcel)
  return eachHardCase((name) => tallies.reduce((sum, tally) => sum + tally[name], 0))
}

interface PushStats {
  /** All events of parcels so far. */
  readonly events: number
  readonly silenced: number
  readonly lost: number
  readonly duplicated: number
  readonly reordered: number
  /** Events whose push is still to be sent. */
  readonly waiting: number
  /** Requests to receivers, including retries. */
  readonly sent: number
  /** Requests that a receiver answered with 2xx. */
  readonly accepted: number
  readonly failed: number
  /** Pushes that no receiver answered with 2xx, and that are no longer retried. */
  readonly givenUp: number
  /** The number of requests by the status of their answer or, without an answer, by their error. */
  readonly answers: Readonly<Record<string, number>>
}

/** The number of calls of the carrier's API, by path and then by status. */
type CallStats = Readonly<Record<string, Readonly<Record<string, number>>>>

export interface SandboxStats {
  readonly calls: CallStats
  readonly tokensIssued: number
  readonly pushes: PushStats
  /** How often each hard case occurs in the whole plan, including events that have not happened yet. */
  readonly tally: Tally
  readonly time: { readonly simulated: string; readonly finished: boolean; readonly speed: number }
}

export type CallCounter = ReturnType<typeof createCallCounter>

export function createCallCounter() {
  const counts = new Map<string, Map<string, number>>()
  return {
    count: (path: string, status: number) => {
      const statuses = counts.get(path) ?? new Map<string, number>()
      counts.set(path, statuses.set(String(status), (statuses.get(String(status)) ?? 0) + 1))
    },
    stats: (): CallStats => Object.fromEntries([...counts].map(([path, statuses]) => [path, Object.fromEntries(statuses)])),
  }
}

export function pushStats(records: readonly PushRecord[]): PushStats {
  const attempts = records.flatMap((record) => record.attempts)
  const count = (is: (record: PushRecord) => boolean): number => records.filter(is).length
  const isAccepted = ({ status }: PushAttempt) => status !== null && status >= 200 && status < 300
  const accepted = attempts.filter(isAccepted).length
  const answers = new Map<string, number>()
  for (const { status, error } of attempts) {
    const name = String(status ?? error)
    answers.set(name, (answers.get(name) ?? 0) + 1)
  }
  return {
    events: records.length,
    silenced: count(({ fate }) => fate === 'silenced'),
    lost: count(({ fate }) => fate === 'lost'),
    duplicated: count(({ copies }) => copies > 1),
    reordered: count(({ reordered }) => reordered),
    waiting: count(({ fate }) => fate === 'waiting'),
    sent: attempts.length,
    accepted,
    failed: attempts.length - accepted,
    givenUp: count((record) => record.fate === 'sent' && !record.attempts.some(isAccepted)),
    answers: Object.fromEntries(answers),
  }
}
