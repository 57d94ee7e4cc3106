import { spanText } from '../../core/domain/amounts.ts'
import type { FailureReason } from '../../core/domain/delivery/delivery.ts'
import type { FailureGroup } from '../../core/domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../core/domain/delivery/endpoint-state.ts'
import { failureText } from '../../core/domain/polling/carrier-answer.ts'
import { isTlsFault, type TlsFault, tlsMeaning, tlsRemedy } from '../../core/domain/system-reason.ts'
import { firstLine } from '../../core/domain/text.ts'

/**
 * A part of a sentence: plain text, or a value that pages show in a special form. `code`: what is typed as it is. `said`: what others have written. `time`: an ISO instant. `ago`: an ISO instant, and how long
 * ago it was. `carrier`: the code of the reason why a call to the carrier failed; `status`: of the reply.
 */
export type Word =
  | string
  | { readonly kind: 'name' | 'time' | 'code' | 'said'; readonly text: string }
  | { readonly kind: 'carrier'; readonly text: string; readonly status: string | undefined }
  | { readonly kind: 'ago'; readonly text: string; readonly ago: string }

/** A sentence as plain text, in which pages find instants and commands by their form, or as words. */
export type Sentence = string | readonly Word[]

export function codeWord(text: string): Word {
  return { kind: 'code', text }
}

export function timeWord(atMs: number): Word {
  return { kind: 'time', text: new Date(atMs).toISOString() }
}

/** Makes an instant a part of a sentence, together with how long ago it was. */
export function agoWord(atMs: number, nowMs: number): Word {
  return { kind: 'ago', text: new Date(atMs).toISOString(), ago: `${spanText(Math.max(0, nowMs - atMs))} ago` }
}

/** Writes a sentence as plain text, for a terminal or a message. */
export function plainText(sentence: Sentence): string {
  return typeof sentence === 'string' ? sentence : sentence.map(plain).join('')
}

function plain(word: Word): string {
  if (typeof word === 'string') return word
  if (word.kind === 'ago') return word.ago
  if (word.kind === 'said') return `"${word.text}"`
  return word.kind === 'carrier' ? failureText(word.text, word.status) : word.text
}

/** What a failed attempt means and what to do, such as `It answers 401`, `who are you`, `it does not accept the signature.` and a remedy. */
export interface FailureWords {
  readonly what: string
  /** The first line of the answer, without control characters and shortened; empty: there was no text. */
  readonly said: string
  /** A clause with its full stop. */
  readonly meaning: string
  /** What an operator can do, in a sentence or two. */
  readonly remedy: string
  /** What of the endpoint an operator has to compare or change. Null: neither would help. */
  readonly change: 'url' | 'key' | null
}

type Words = Pick<FailureWords, 'meaning' | 'remedy'> & { readonly change?: 'url' | 'key' }

/** How much an endpoint refuses, as far as it is known: everything, some events, or the one event that is looked at. */
export type Extent = 'all' | 'some' | 'one'

/** For each reason why there is no answer. `host`: the host of the endpoint's URL. */
const REASONS: Readonly<Record<Exclude<FailureReason, TlsFault>, (host: string) => Words>> = {
  timeout: (host) => ({
    meaning: `${host} does not answer in time (delivery.timeout).`,
    remedy: 'It should answer first and work later. If it does, is it overloaded, or does a firewall drop the connection?',
  }),
  dns: (host) => ({
    meaning: `the name ${host} is not found.`,
    remedy: 'Is the name right, and does the DNS of this machine know it?',
    change: 'url',
  }),
  connection_refused: (host) => ({
    meaning: `nothing listens at ${host}, or there is no route to it.`,
    remedy: 'Does it run, and are its host and port right?',
    change: 'url',
  }),
  reset: (host) => ({
    meaning: `${host} ends the connection before it answers.`,
    remedy: 'Its log, or that of a proxy before it, says why.',
  }),
  proxy: () => ({
    meaning: 'the proxy cannot be reached, or refuses the connection.',
    remedy: 'Compare the address and the rules of the proxy.',
  }),
  bad_response: (host) => ({
    meaning: `the answer of ${host} is not valid HTTP (it may name its length twice, or beside Transfer-Encoding), or is too long.`,
    remedy: 'Whoever runs it, or the proxy before it, must mend its answers.',
  }),
  forbidden: (host) => ({
    meaning: `${host} is an address that may not be sent to (delivery.allowNetworks).`,
    remedy: 'List its network there, or use another address.',
    change: 'url',
  }),
  network: (host) => ({
    meaning: `the network between the relay and ${host} fails.`,
    remedy: 'Look at the firewall and the routes between them.',
  }),
  interrupted: () => ({ meaning: 'the relay stopped during the attempt.', remedy: 'There is nothing to do: the relay makes it again.' }),
  withdrawn: () => ({ meaning: 'it was changed before anything was sent.', remedy: 'There is nothing to do: the relay makes it again.' }),
  body_gone: () => ({
    meaning: 'the bytes of the event are no longer kept (retention.raw).',
    remedy: 'It cannot be sent any more.',
  }),
}

const WORDS_OF: ReadonlyMap<string, (host: string) => Words> = new Map(Object.entries(REASONS))

export function answerWord({ status, reason }: Pick<FailureGroup, 'status' | 'reason'>): string {
  return status === null ? (reason ?? 'no answer').replaceAll('_', ' ') : String(status)
}

/** Whether an endpoint has accepted nothing since the first of these failures. */
export function extentOf({ health: { lastSuccessAtMs } }: Pick<EndpointState, 'health'>, { firstAtMs }: FailureGroup): Extent {
  return lastSuccessAtMs === null || lastSuccessAtMs < firstAtMs ? 'all' : 'some'
}

/** Whether a receiver that answers this status most probably has another key, so that no signature matches. */
export function isLikelyKey(status: number | null): boolean {
  return status === 401 || status === 403
}

/** Explains a failed attempt. `url`: where it was sent. */
export function wordFailure(failure: Pick<FailureGroup, 'status' | 'reason' | 'answerStart'>, url: string, extent: Extent): FailureWords {
  const { status, reason, answerStart } = failure
  if (status === null) return { what: 'No answer', said: '', change: null, ...noAnswer(reason, hostOf(url)) }
  return { what: `It answers ${status}`, said: firstLine(answerStart), change: null, ...answered(status, extent) }
}

/** Joins the words about a failure into one sentence. */
export function failureSentence({ what, said, meaning }: FailureWords): readonly Word[] {
  return [what, ...(said === '' ? [] : [' ', { kind: 'said', text: said } as const]), `: ${meaning}`]
}

/** The endpoint of a failed attempt, as far as its remedy depends on it. `typed`: what people type for it in a command. */
interface FailedEndpoint {
  readonly origin: EndpointState['origin']
  readonly name: string
  readonly typed: string
}

/** Says in plain text what to do about a failed attempt, for a terminal or a message. */
export function remedySentence({ remedy, change }: FailureWords, { origin, name, typed }: FailedEndpoint): string {
  return change === null ? remedy : `${remedy} ${HOW[change][origin](name, typed)}`
}

const RELOAD = 'then reload: parcel-relay reload.'
const COMPARE = (name: string, typed: string) =>
  `Compare the fingerprint of its key, parcel-relay endpoints show ${typed}, with the key that ${name} verifies with, parcel-relay fingerprint --key-file FILE. If they differ, give ${name} the relay's key, or the relay the key of ${name}.`

/** How to change what is wrong. The key of a managed endpoint and that of one in the config are compared alike: both have a fingerprint. */
const HOW: Readonly<
  Record<NonNullable<FailureWords['change']>, Readonly<Record<EndpointState['origin'], (name: string, typed: string) => string>>>
> = {
  url: {
    managed: (_, typed) => `To change its URL: parcel-relay endpoints set ${typed} --to URL.`,
    config: () => `Its URL is in the config file: change it there, ${RELOAD}`,
    operator: () => `Its address is operator.url: change it in the config file, ${RELOAD}`,
  },
  key: {
    managed: COMPARE,
    config: COMPARE,
    operator: () => `Its key is operator.sharedKey, and its password may be in operator.url: correct them in the config file, ${RELOAD}`,
  },
}

function noAnswer(reason: string | null, host: string): Words {
  if (reason !== null && isTlsFault(reason)) {
    const isAddress = reason === 'certificate_wrong_name' || reason === 'tls_protocol'
    const words = { meaning: `${tlsMeaning(reason, host)}.`, remedy: tlsRemedy(reason, 'caFile') }
    return isAddress ? { ...words, change: 'url' } : words
  }
  const known = WORDS_OF.get(reason ?? '')?.(host)
  return known ?? { meaning: `${answerWord({ status: null, reason })}.`, remedy: 'The log says more.' }
}

const ASK = 'Give its answer to the people who run it.'
const REFUSES: Readonly<Record<Extent, string>> = {
  all: 'it refuses these events.',
  some: 'it refuses some events.',
  one: 'it refuses this event.',
}

function answered(status: number, extent: Extent): Words {
  if (status >= 500) return { meaning: 'it can be reached, but fails inside.', remedy: ASK }
  if (isLikelyKey(status)) return { meaning: 'it does not accept the signature.', remedy: 'Does it have the current key?', change: 'key' }
  if (status === 410) return { meaning: 'it says that it is gone for good.', remedy: 'Has it moved?', change: 'url' }
  if (status === 429) return { meaning: 'it asks the relay to send less for a while.', remedy: 'The relay does; nothing has to be done.' }
  if (status === 413) return { meaning: 'the event is too large for it.', remedy: 'Does a proxy before it limit the size of bodies?' }
  if (status === 415) return { meaning: 'it does not take application/json.', remedy: 'Is the path right?', change: 'url' }
  if (extent !== 'some' && (status === 404 || status === 405))
    return { meaning: 'it takes no events there.', remedy: 'Is the path right?', change: 'url' }
  if (status >= 400) return { meaning: REFUSES[extent], remedy: ASK }
  if (status >= 300) return { meaning: 'it redirects, which the relay does not follow.', remedy: 'Name the final URL.', change: 'url' }
  return { meaning: 'the relay takes only 200 to 299 as accepted.', remedy: ASK }
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url
}
