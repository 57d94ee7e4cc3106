import { deepEqual, equal, fail, match, notEqual, ok } from 'node:assert/strict'

/** A client of the parcel status service, written from the specification alone. It must not import the code that it checks. */
export interface SpecClientOptions {
  /** Without a trailing slash. */
  readonly baseUrl: string
  readonly username: string
  readonly password: string
}

export interface CarrierContractOptions extends SpecClientOptions {
  /** Parcels that have entries and do not change during the check. */
  readonly knownNumbers: readonly string[]
  /** Two or more languages in which the service has texts. */
  readonly languages: readonly string[]
  readonly unknownNumber?: string
}

type JsonObject = Readonly<Record<string, unknown>>

export interface SpecAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: unknown
}

export interface SpecHistory {
  readonly statuses: readonly JsonObject[]
  readonly trackingIds: readonly unknown[]
  readonly distributionType: unknown
}

/** Counts of what was checked, which let a caller see that the check did something. */
export interface ContractReport {
  readonly parcels: number
  readonly entries: number
  readonly consumerTexts: number
  readonly hidden: number
  readonly differingTexts: number
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function objectOf(value: unknown, what: string): JsonObject {
  return isObject(value) ? value : fail(`${what} is not a JSON object: ${JSON.stringify(value)}`)
}

function arrayOf(value: unknown, what: string): readonly unknown[] {
  return Array.isArray(value) ? value : fail(`${what} is not an array: ${JSON.stringify(value)}`)
}

async function ask(url: string, init: RequestInit): Promise<SpecAnswer> {
  const response = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.timeout(15_000) })
  const text = await response.text()
  const contentType = response.headers.get('content-type') ?? ''
  const body: unknown = /^application\/([a-z.]+\+)?json\b/i.test(contentType) ? JSON.parse(text) : text
  return { status: response.status, contentType, body }
}

export async function askToken({ baseUrl, username, password }: SpecClientOptions): Promise<SpecAnswer> {
  const body = JSON.stringify({ username, password })
  return ask(`${baseUrl}/auth/token`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
}

export async function tokenOf(options: SpecClientOptions): Promise<string> {
  const answer = await askToken(options)
  equal(answer.status, 200, 'the token endpoint answers 200')
  const { token } = objectOf(answer.body, 'the token answer')
  return typeof token === 'string' && token !== '' ? token : fail('the token is not a non-empty string')
}

export async function askStatus(
  baseUrl: string,
  path: { readonly number: string; readonly kind: 'latest' | 'all'; readonly language?: string },
  token: string | null,
): Promise<SpecAnswer> {
  const query = path.language === undefined ? '' : `?language=${encodeURIComponent(path.language)}`
  const headers: Record<string, string> = token === null ? {} : { Authorization: `Bearer ${token}` }
  return ask(`${baseUrl}/v1/status/${encodeURIComponent(path.number)}/${path.kind}${query}`, { headers })
}

const strings = ['status', 'detailedStatus', 'eventTimestamp', 'location', 'detailedStatusDescription'] as const
const timestampForm = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z$/

function textOf(entry: JsonObject, name: (typeof strings)[number]): string {
  const value = entry[name]
  return typeof value === 'string' ? value : fail(`${name} is not a string: ${JSON.stringify(entry)}`)
}

function instantOf(entry: JsonObject): number {
  return Date.parse(textOf(entry, 'eventTimestamp'))
}

/** Checks a "Status entry (pull API)". Ignores fields that the specification does not define. */
export function assertEntry(value: unknown): JsonObject {
  const entry = objectOf(value, 'a status entry')
  for (const name of strings) textOf(entry, name)
  for (const name of ['status', 'detailedStatus'] as const) notEqual(entry[name], '', `${name} is not empty`)
  match(textOf(entry, 'eventTimestamp'), timestampForm, 'eventTimestamp is UTC, in seconds or milliseconds')
  ok(Number.isFinite(instantOf(entry)), `eventTimestamp is a real instant: ${textOf(entry, 'eventTimestamp')}`)
  ok(Object.hasOwn(entry, 'consumerDescription'), 'consumerDescription is there, if only as null')
  const { consumerDescription, displayToConsumer } = entry
  ok(consumerDescription === null || typeof consumerDescription === 'string', 'consumerDescription is a string or null')
  equal(typeof displayToConsumer, 'boolean', 'displayToConsumer is a boolean')
  if (displayToConsumer === false) equal(consumerDescription, null, 'an entry that is not for consumers has no text for them')
  return entry
}

function assertLabels(body: JsonObject): void {
  const ids = arrayOf(body.trackingIds, 'trackingIds')
  ok(ids.length > 0, 'a parcel has a tracking id')
  for (const id of ids) match(typeof id === 'string' ? id : fail('a tracking id is not a string'), /^\d+$/, 'a tracking id is numeric')
  equal(new Set(ids).size, ids.length, 'no tracking id is named twice')
  equal(typeof body.distributionType, 'string', 'distributionType is a string')
}

function assertJson(answer: SpecAnswer): JsonObject {
  equal(answer.status, 200, `answers 200, not ${answer.status} ${JSON.stringify(answer.body)}`)
  match(answer.contentType, /^application\/json\s*(;|$)/i, 'the answer is application/json')
  return objectOf(answer.body, 'the answer')
}

/** Checks a `GetAllStatusesResponse`. */
export function assertAll(answer: SpecAnswer): SpecHistory {
  const body = assertJson(answer)
  const statuses = arrayOf(body.statuses, 'statuses').map(assertEntry)
  assertLabels(body)
  for (const [nth, entry] of statuses.entries()) {
    const older = statuses[nth + 1]
    if (older !== undefined) ok(instantOf(entry) >= instantOf(older), 'entries are newest first')
  }
  return { statuses, trackingIds: arrayOf(body.trackingIds, 'trackingIds'), distributionType: body.distributionType }
}

/** Checks a `GetLatestStatusResponse`: it has the first entry of the history, with the same labels. */
function assertLatest(answer: SpecAnswer, all: SpecHistory): void {
  const body = assertJson(answer)
  assertLabels(body)
  deepEqual(assertEntry(body.status), all.statuses[0], 'latest is the first of all')
  deepEqual(body.trackingIds, all.trackingIds, '`latest` has the tracking ids of `all`')
  deepEqual(body.distributionType, all.distributionType, 'latest has the distribution type of all')
}

async function assertAuthentication(options: CarrierContractOptions, number: string): Promise<string> {
  const refused = await askToken({ ...options, password: `${options.password}-not` })
  ok(refused.status >= 400 && refused.status < 500, 'a wrong password is refused')
  ok(!isObject(refused.body) || refused.body.token === undefined, 'a wrong password gets no token')
  const token = await tokenOf(options)
  for (const kind of ['latest', 'all'] as const) {
    for (const bad of [null, 'not-a-token', `${token}x`]) {
      const answer = await askStatus(options.baseUrl, { number, kind }, bad)
      equal(answer.status, 401, `${kind} without a valid token answers 401`)
      ok(!JSON.stringify(answer.body).includes('"statuses"'), 'a refusal contains no statuses')
    }
  }
  return token
}

const untexted = (entry: JsonObject): JsonObject => ({ ...entry, detailedStatusDescription: '', consumerDescription: null })

/** Checks that a history has the same entries in two languages. Returns how many entries differ in their texts. */
function assertSameButForTexts(one: SpecHistory, other: SpecHistory): number {
  deepEqual(other.statuses.map(untexted), one.statuses.map(untexted), 'a language changes texts only')
  deepEqual(other.trackingIds, one.trackingIds, 'a language does not change the tracking ids')
  equal(other.distributionType, one.distributionType, 'a language does not change the distribution type')
  return one.statuses.filter((entry, nth) => entry.detailedStatusDescription !== other.statuses[nth]?.detailedStatusDescription).length
}

/** Checks a service against the specification, by its answers alone. */
export async function assertCarrierContract(options: CarrierContractOptions): Promise<ContractReport> {
  const { baseUrl, knownNumbers, languages, unknownNumber = 'ZZ999999999ZZ' } = options
  const [firstNumber = fail('no known numbers'), firstLanguage = fail('no languages')] = [knownNumbers[0], languages[0]]
  const token = await assertAuthentication(options, firstNumber)
  for (const kind of ['latest', 'all'] as const) {
    const answer = await askStatus(baseUrl, { number: unknownNumber, kind, language: firstLanguage }, token)
    equal(answer.status, 404, 'an unknown number answers 404')
  }
  const seen: JsonObject[] = []
  let differingTexts = 0
  for (const number of knownNumbers) {
    const histories: SpecHistory[] = []
    for (const language of languages) {
      const all = assertAll(await askStatus(baseUrl, { number, kind: 'all', language }, token))
      ok(all.statuses.length > 0, `${number} has entries`)
      assertLatest(await askStatus(baseUrl, { number, kind: 'latest', language }, token), all)
      if (histories[0] !== undefined) differingTexts += assertSameButForTexts(histories[0], all)
      histories.push(all)
      seen.push(...all.statuses)
    }
    assertLatest(
      await askStatus(baseUrl, { number, kind: 'latest' }, token),
      assertAll(await askStatus(baseUrl, { number, kind: 'all' }, token)),
    )
  }
  if (languages.length > 1) ok(differingTexts > 0, 'the language parameter selects the language')
  return {
    parcels: knownNumbers.length,
    entries: seen.length,
    consumerTexts: seen.filter((entry) => entry.consumerDescription !== null).length,
    hidden: seen.filter((entry) => entry.displayToConsumer === false).length,
    differingTexts,
  }
}
