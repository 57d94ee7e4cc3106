import { counted, countText } from '../../core/domain/amounts.ts'
import { describeLimit } from '../../core/domain/delivery/endpoint-health.ts'
import { ofEach, SETTINGS, type Setting } from '../../core/domain/delivery/endpoint-settings.ts'
import { typedName } from '../../core/domain/delivery/endpoint-state.ts'
import type { EndpointAnswer, InspectedEndpointAnswer } from '../../core/http/delivery/endpoints.routes.ts'
import type { TestAnswer } from '../events/operator.routes.ts'
import { type Extent, failureSentence, plainText, remedySentence, wordFailure } from '../problems/words.ts'
import { age, type Cell, plain, table } from './terminal.ts'

export function presentEndpoints(endpoints: readonly EndpointAnswer[]): string {
  if (endpoints.length === 0) return 'There is no endpoint yet. Add one: parcel-relay endpoints add NAME URL\n'
  return table(
    ['name', 'state', 'waiting', 'oldest', 'given up', 'last error', 'id'],
    endpoints.map((endpoint) => [
      endpoint.name,
      stateCell(endpoint),
      countText(endpoint.waiting),
      age(endpoint.oldestWaitingSince),
      countText(endpoint.givenUp),
      lastError(endpoint) ?? '',
      endpoint.id,
    ]),
  )
}

export function presentEndpoint(endpoint: InspectedEndpointAnswer): string {
  const oldest = age(endpoint.oldestWaitingSince)
  const lines: readonly (readonly [name: string, value: string | null])[] = [
    ['name', endpoint.name],
    ['id', endpoint.id],
    ['url', endpoint.url],
    ['defined in', endpoint.origin === 'config' ? 'the config file' : 'the store'],
    ['state', describeState(endpoint)],
    ['began', endpoint.beganAt],
    ['waiting', `${counted(endpoint.waiting, 'delivery', 'deliveries')}${oldest === '' ? '' : `, the oldest for ${oldest}`}`],
    ['given up', counted(endpoint.givenUp, 'delivery', 'deliveries')],
    ['last success', endpoint.lastSuccessAt === null ? null : `${age(endpoint.lastSuccessAt)} ago`],
    ['last error', lastError(endpoint)],
    ['what to do', remedyOfLast(endpoint)],
    ['next probe', describeNextProbe(endpoint)],
    ['filters', describeFilters(endpoint.filters)],
    ['signature', endpoint.signature],
    ['key', describeKey(endpoint)],
    ['new key', describeNextKey(endpoint)],
    ...changedSettings(endpoint),
  ]
  const settings = lines.flatMap(([name, value]) => (value === null ? [] : [`${name.padEnd(14)}${plain(value)}`]))
  const { failures } = endpoint
  return `${settings.join('\n')}\n${failures.length === 0 ? '' : `\n${presentFailures(failures)}`}`
}

/** Says how many deliveries a retry made due. */
export function dueNow({ waiting }: EndpointAnswer): string {
  return waiting === 0 ? 'nothing waits' : `${counted(waiting, 'delivery that still waits is', 'deliveries that still wait are')} due now`
}

/** Returns the settings that differ from their defaults. */
function changedSettings(endpoint: EndpointAnswer): readonly (readonly [name: string, value: string | null])[] {
  const values: Readonly<Record<string, unknown>> = endpoint
  const headers = Object.keys(endpoint.headers)
  return [
    ...Object.entries(ofEach(SETTINGS, (row, name) => describeSetting(row, values[name]))),
    ['headers', headers.length === 0 ? null : headers.join(', ')],
    ['queued to', endpoint.queuedTo === null ? null : `sequence ${endpoint.queuedTo} of the feed; it catches up`],
  ]
}

function describeSetting(row: Setting, value: unknown): string | null {
  if (row.kind === 'flag') return value === true ? row.shown : null
  if (row.kind === 'choice') return value === row.names[0] ? null : (row.shown ?? null)
  if (row.kind === 'several' && String(value) === row.preset.join()) return null
  if (typeof value === 'number' && 'unset' in row)
    return row.per === undefined ? `${countText(value)}${row.unit ?? ''}` : `at most ${counted(value, 'attempt', 'attempts')} ${row.per}`
  return Array.isArray(value) ? value.join(', ') : null
}

function presentFailures(failures: InspectedEndpointAnswer['failures']): string {
  return table(
    ['failed with', 'times', 'last', 'delivery'],
    failures.map((failure) => [describeAnswer(failure), countText(failure.count), `${age(failure.lastAt)} ago`, failure.delivery]),
  )
}

/** That it is active is no evidence that it works. */
const UNTRIED = 'untried'

function isUntried({ state, lastSuccessAt, failingSince }: EndpointAnswer): boolean {
  return state === 'active' && lastSuccessAt === null && failingSince === null
}

function stateCell(endpoint: EndpointAnswer): Cell {
  const { state, disabledBecause: because } = endpoint
  if (isUntried(endpoint)) return { text: UNTRIED, tone: 'dim' }
  if (state !== 'disabled') return { text: state, tone: state === 'active' ? 'good' : 'bad' }
  return { text: because === null ? state : `disabled (${because})`, tone: because === 'operator' ? 'dim' : 'bad' }
}

function describeState(endpoint: EndpointAnswer): string {
  const { state, disabledBecause: because, disabledSince, failingSince, limitPerSecond: limit, waitsUntil: wait } = endpoint
  if (state === 'disabled')
    return `${state}${because === null ? '' : ` (${because})`}${disabledSince === null ? '' : ` for ${age(disabledSince)}, since ${disabledSince}`}`
  if (state === 'active' && limit !== null)
    return `${state}; it ${describeLimit(limit)}${wait === null ? '' : `, and asked to wait until ${wait}`}`
  if (isUntried(endpoint)) return `${state}; it has accepted nothing yet`
  return failingSince === null ? state : `${state}; it has accepted nothing for ${age(failingSince)}, since ${failingSince}`
}

/** Names a second time if an event of a parcel without a waiting delivery may be tried before the waiting deliveries. */
function describeNextProbe({ nextProbeAt: next, newEventProbeAt: ofNew }: EndpointAnswer): string | null {
  if (ofNew === null) return null
  const isDue = (instant: string) => Date.parse(instant) <= Date.now()
  const when = isDue(ofNew) ? 'at once' : `at ${ofNew}`
  if (next === null) return `nothing waits; the next event goes ${when}`
  if (isDue(next)) return 'now'
  return next <= ofNew ? next : `${next}; an event of another parcel goes ${when}`
}

/** Describes the key by its fingerprint. To check that the receiver has the same key, compare with `parcel-relay fingerprint`. */
function describeKey(endpoint: InspectedEndpointAnswer): string {
  const { keyFingerprint: print, keySince: from, origin } = endpoint
  const since = origin === 'config' ? `, ${keyOrigin(endpoint)}` : from === null ? '' : `, in use since ${from}`
  return print === null ? `cannot be opened${since}` : `fingerprint ${print}${since}`
}

function keyOrigin({ keyFrom: from }: InspectedEndpointAnswer): string {
  if (from === null) return 'from the config file'
  return 'env' in from
    ? `from the environment variable ${from.env} (a new value needs a restart)`
    : `from the file ${from.file} (a reload reads it again)`
}

function describeNextKey({ nextKeyFingerprint: print, nextKeyFrom: from }: InspectedEndpointAnswer): string | null {
  return from === null ? null : `${print === null ? '' : `fingerprint ${print}, `}takes over at ${from}`
}

function lastError({ lastFailure }: EndpointAnswer): string | null {
  return lastFailure === null ? null : `${describeAnswer(lastFailure)}, ${age(lastFailure.at)} ago`
}

/** What an attempt came to, wherever an answer of the API tells it. */
type Attempt = Pick<TestAnswer, 'status' | 'reason' | 'answerStart'>

export function describeAnswer({ status, reason, answerStart }: Attempt): string {
  if (status === null) return (reason ?? 'no answer').replaceAll('_', ' ')
  const start = (answerStart ?? '').split('\n')[0]?.trim().slice(0, ANSWER_SHOWN) ?? ''
  return start === '' ? String(status) : `${status} ${start}`
}

const ANSWER_SHOWN = 60

export interface Explained {
  readonly url: string
  readonly extent: Extent
  /** Null: the address in operator.url. */
  readonly endpoint: Pick<EndpointAnswer, 'id' | 'name'> | EndpointAnswer | null
}

/** Explains a failed attempt in an answer of the API, in a sentence, and says what to do in another. */
export function explainAttempt(attempt: Attempt, { url, extent, endpoint }: Explained): { readonly what: string; readonly todo: string } {
  const { status, reason, answerStart } = attempt
  const words = wordFailure({ status, reason, answerStart: Buffer.from(answerStart ?? '') }, url, extent)
  const { id, name } = endpoint ?? { id: '', name: 'it' }
  const typed = typedName({ id, name })
  const what = plainText(failureSentence(words))
  // A delivery names its endpoint, but not where it is defined.
  if (endpoint !== null && !('origin' in endpoint))
    return { what, todo: words.change === null ? words.remedy : `${words.remedy} See: parcel-relay endpoints show ${typed}.` }
  return { what, todo: remedySentence(words, { origin: endpoint?.origin ?? 'operator', name, typed }) }
}

/** Null: it has no failure, or has accepted something since. */
function remedyOfLast(endpoint: EndpointAnswer): string | null {
  const { lastFailure: last, lastSuccessAt: success, url } = endpoint
  if (last === null || (success !== null && Date.parse(success) > Date.parse(last.at))) return null
  return explainAttempt(last, { url, extent: success === null ? 'all' : 'some', endpoint }).todo
}

function describeFilters(filters: EndpointAnswer['filters']): string | null {
  const described = Object.entries(filters).flatMap(([name, value]) => {
    const words = Array.isArray(value) ? value.join(' or ') : typeof value === 'boolean' ? String(value) : ''
    return words === '' ? [] : [`${name} ${words}`]
  })
  return described.length === 0 ? null : described.join('; ')
}
