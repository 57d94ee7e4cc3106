import { counted, countText } from '../../domain/amounts.ts'
import { typedName } from '../../domain/delivery/endpoint.ts'
import { type Extent, failureSentence, remedySentence, wordFailure } from '../../domain/delivery/failure-words.ts'
import { describeLimit } from '../../domain/delivery/pace.ts'
import { FILTERS, ofEach, SETTINGS, type Setting } from '../../domain/delivery/settings-table.ts'
import { plainText } from '../../domain/words.ts'
import { listOf, memberOf, textOf } from '../asking/ask-relay.ts'
import { age } from '../terminal/ages.ts'
import { type Cell, plain, table } from '../terminal/table.ts'

export function presentEndpoints(endpoints: readonly unknown[]): string {
  if (endpoints.length === 0) return 'There is no endpoint yet. Add one: parcel-relay endpoints add NAME URL\n'
  return table(
    ['name', 'state', 'waiting', 'oldest', 'given up', 'last error', 'id'],
    endpoints.map((endpoint) => [
      textOf(endpoint, 'name') ?? '',
      stateCell(endpoint),
      countText(Number(memberOf(endpoint, 'waiting'))),
      age(textOf(endpoint, 'oldestWaitingSince')),
      countText(Number(memberOf(endpoint, 'givenUp'))),
      lastError(endpoint),
      textOf(endpoint, 'id') ?? '',
    ]),
  )
}

export function presentEndpoint(endpoint: unknown): string {
  const text = (name: string) => textOf(endpoint, name)
  const waiting = Number(memberOf(endpoint, 'waiting'))
  const oldest = age(text('oldestWaitingSince'))
  const lines: readonly (readonly [name: string, value: string | null])[] = [
    ['name', text('name')],
    ['id', text('id')],
    ['url', text('url')],
    ['defined in', text('origin') === 'config' ? 'the config file' : 'the store'],
    ['state', describeState(endpoint)],
    ['began', text('beganAt')],
    ['waiting', `${counted(waiting, 'delivery', 'deliveries')}${oldest === '' ? '' : `, the oldest for ${oldest}`}`],
    ['given up', counted(Number(memberOf(endpoint, 'givenUp')), 'delivery', 'deliveries')],
    ['last success', since(text('lastSuccessAt'))],
    ['last error', lastError(endpoint) === '' ? null : lastError(endpoint)],
    ['what to do', remedyOfLast(endpoint)],
    ['next probe', describeNextProbe(endpoint)],
    ['filters', describeFilters(memberOf(endpoint, 'filters'))],
    ['signature', text('signature')],
    ['key', describeKey(endpoint)],
    ['new key', describeNextKey(endpoint)],
    ...changedSettings(endpoint),
  ]
  const settings = lines.flatMap(([name, value]) => (value === null ? [] : [`${name.padEnd(14)}${plain(value)}`]))
  const failures = listOf(endpoint, 'failures')
  return `${settings.join('\n')}\n${failures.length === 0 ? '' : `\n${presentFailures(failures)}`}`
}

/** Says how many deliveries a retry made due. */
export function dueNow(endpoint: unknown): string {
  const waiting = Number(memberOf(endpoint, 'waiting'))
  return waiting === 0 ? 'nothing waits' : `${counted(waiting, 'delivery that still waits is', 'deliveries that still wait are')} due now`
}

/** Returns the settings that differ from their defaults. */
function changedSettings(endpoint: unknown): readonly (readonly [name: string, value: string | null])[] {
  const [given, queuedTo] = [memberOf(endpoint, 'headers'), memberOf(endpoint, 'queuedTo')]
  const headers = typeof given === 'object' && given !== null ? Object.keys(given) : []
  return [
    ...Object.entries(ofEach(SETTINGS, (row, name) => describeSetting(row, memberOf(endpoint, name)))),
    ['headers', headers.length === 0 ? null : headers.join(', ')],
    ['queued to', typeof queuedTo === 'number' ? `sequence ${queuedTo} of the feed; it catches up` : null],
  ]
}

function describeSetting(row: Setting, value: unknown): string | null {
  if (row.kind === 'flag') return value === true ? row.shown : null
  if (row.kind === 'choice') return value === row.names[0] ? null : (row.shown ?? null)
  if (typeof value === 'number' && 'per' in row) return `at most ${counted(value, 'attempt', 'attempts')} ${row.per}`
  return Array.isArray(value) ? value.join(', ') : null
}

function presentFailures(failures: readonly unknown[]): string {
  return table(
    ['failed with', 'times', 'last', 'delivery'],
    failures.map((failure) => [
      describeAnswer(failure),
      countText(Number(memberOf(failure, 'count'))),
      since(textOf(failure, 'lastAt')) ?? '',
      textOf(failure, 'delivery') ?? '',
    ]),
  )
}

/** That it is active is no evidence that it works. */
const UNTRIED = 'untried'

function isUntried(endpoint: unknown): boolean {
  const failingSince = textOf(endpoint, 'failingSince')
  return textOf(endpoint, 'state') === 'active' && textOf(endpoint, 'lastSuccessAt') === null && failingSince === null
}

function stateCell(endpoint: unknown): Cell {
  const state = textOf(endpoint, 'state') ?? ''
  const because = textOf(endpoint, 'disabledBecause')
  if (isUntried(endpoint)) return { text: UNTRIED, tone: 'dim' }
  if (state !== 'disabled') return { text: state, tone: state === 'active' ? 'good' : 'bad' }
  return { text: because === null ? state : `disabled (${because})`, tone: because === 'operator' ? 'dim' : 'bad' }
}

function describeState(endpoint: unknown): string {
  const state = textOf(endpoint, 'state') ?? ''
  const because = textOf(endpoint, 'disabledBecause')
  const [disabledSince, failingSince] = [textOf(endpoint, 'disabledSince'), textOf(endpoint, 'failingSince')]
  if (state === 'disabled')
    return `${state}${because === null ? '' : ` (${because})`}${disabledSince === null ? '' : ` for ${age(disabledSince)}, since ${disabledSince}`}`
  const limit = memberOf(endpoint, 'limitPerSecond')
  const wait = textOf(endpoint, 'waitsUntil')
  if (state === 'active' && typeof limit === 'number')
    return `${state}; it ${describeLimit(limit)}${wait === null ? '' : `, and asked to wait until ${wait}`}`
  if (isUntried(endpoint)) return `${state}; it has accepted nothing yet`
  return failingSince === null ? state : `${state}; it has accepted nothing for ${age(failingSince)}, since ${failingSince}`
}

/** Names a second time if an event of a parcel without a waiting delivery may be tried before the waiting deliveries. */
function describeNextProbe(endpoint: unknown): string | null {
  const [next, ofNew] = [textOf(endpoint, 'nextProbeAt'), textOf(endpoint, 'newEventProbeAt')]
  if (ofNew === null) return null
  const isDue = (instant: string) => Date.parse(instant) <= Date.now()
  const when = isDue(ofNew) ? 'at once' : `at ${ofNew}`
  if (next === null) return `nothing waits; the next event goes ${when}`
  if (isDue(next)) return 'now'
  return next <= ofNew ? next : `${next}; an event of another parcel goes ${when}`
}

/** Describes the key by its fingerprint. To check that the receiver has the same key, compare with `parcel-relay fingerprint`. */
function describeKey(endpoint: unknown): string {
  const print = textOf(endpoint, 'keyFingerprint')
  const from = textOf(endpoint, 'keySince')
  const since = textOf(endpoint, 'origin') === 'config' ? `, ${keyOrigin(endpoint)}` : from === null ? '' : `, in use since ${from}`
  return print === null ? `cannot be opened${since}` : `fingerprint ${print}${since}`
}

function keyOrigin(endpoint: unknown): string {
  const from = memberOf(endpoint, 'keyFrom')
  const [variable, file] = [textOf(from, 'env'), textOf(from, 'file')]
  if (variable !== null) return `from the environment variable ${variable} (a new value needs a restart)`
  return file === null ? 'from the config file' : `from the file ${file} (a reload reads it again)`
}

function describeNextKey(endpoint: unknown): string | null {
  const [print, from] = [textOf(endpoint, 'nextKeyFingerprint'), textOf(endpoint, 'nextKeyFrom')]
  return from === null ? null : `${print === null ? '' : `fingerprint ${print}, `}takes over at ${from}`
}

function lastError(endpoint: unknown): string {
  const failure = memberOf(endpoint, 'lastFailure')
  return typeof failure === 'object' && failure !== null ? `${describeAnswer(failure)}, ${since(textOf(failure, 'at')) ?? ''}` : ''
}

export function describeAnswer(attempt: unknown): string {
  const status = memberOf(attempt, 'status')
  if (typeof status !== 'number') return (textOf(attempt, 'reason') ?? 'no answer').replaceAll('_', ' ')
  const start = (textOf(attempt, 'answerStart') ?? '').split('\n')[0]?.trim().slice(0, ANSWER_SHOWN) ?? ''
  return start === '' ? String(status) : `${status} ${start}`
}

const ANSWER_SHOWN = 60

export interface Explained {
  readonly url: string
  readonly extent: Extent
  /** From the API. Null: the address in operator.url. */
  readonly endpoint: unknown
}

/** Explains a failed attempt in an answer of the API, in a sentence, and says what to do in another. */
export function explainAttempt(attempt: unknown, { url, extent, endpoint }: Explained): { readonly what: string; readonly todo: string } {
  const status = memberOf(attempt, 'status')
  const failure = {
    status: typeof status === 'number' ? status : null,
    reason: textOf(attempt, 'reason'),
    answerStart: Buffer.from(textOf(attempt, 'answerStart') ?? ''),
  }
  const words = wordFailure(failure, url, extent)
  const [id, name] = [textOf(endpoint, 'id') ?? '', textOf(endpoint, 'name') ?? 'it']
  const typed = typedName({ id, name })
  const given = textOf(endpoint, 'origin')
  const what = plainText(failureSentence(words))
  // A delivery names its endpoint, but not where it is defined.
  if (endpoint !== null && given === null)
    return { what, todo: words.change === null ? words.remedy : `${words.remedy} See: parcel-relay endpoints show ${typed}.` }
  const origin = endpoint === null ? 'operator' : given === 'config' ? 'config' : 'managed'
  return { what, todo: remedySentence(words, { origin, name, typed }) }
}

/** Null: it has no failure, or has accepted something since. */
function remedyOfLast(endpoint: unknown): string | null {
  const last = memberOf(endpoint, 'lastFailure')
  const [success, failed] = [textOf(endpoint, 'lastSuccessAt'), textOf(last, 'at')]
  if (failed === null || (success !== null && Date.parse(success) > Date.parse(failed))) return null
  return explainAttempt(last, { url: textOf(endpoint, 'url') ?? '', extent: success === null ? 'all' : 'some', endpoint }).todo
}

function since(instant: string | null): string | null {
  return instant === null ? null : `${age(instant)} ago`
}

function describeFilters(filters: unknown): string | null {
  const described = Object.keys(FILTERS).flatMap((name) => {
    const value = memberOf(filters, name)
    const words = Array.isArray(value) ? value.join(' or ') : typeof value === 'boolean' ? String(value) : ''
    return words === '' ? [] : [`${name} ${words}`]
  })
  return described.length === 0 ? null : described.join('; ')
}
