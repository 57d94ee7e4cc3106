import { type CallSpender, type QuestionEnd, questionEndOf, SLOW_MS } from '../../domain/admin/tally.ts'
import { parseAllAnswer } from '../../domain/history/pull-response.ts'
import { parseRetryAfter, retryAfterDefaultMs } from '../../domain/instant.ts'
import type { CallPriority, CarrierAnswer, UnavailableReason } from '../../domain/polling/carrier-answer.ts'
import { unnamedLine } from '../../domain/text.ts'
import type { Relay } from '../../flow/relay-part.ts'
import type { Deadline } from '../../outbound/deadline.ts'
import type { TokenClient } from '../token/token-client.ts'
import { type Answered, type Exchange, type Failed, spentBy, withQuickRetries } from './exchange.ts'

const BODY_BYTES_MAX = 1_048_576
/** The `retryAfterMs` of a call that timed out in the relay's own queue, or too early to blame the carrier. */
const CUT_RETRY_MS = 1000

export interface StatusPorts extends Pick<Relay, 'clock'> {
  /** Without a trailing slash. */
  readonly baseUrl: string
  readonly exchange: Exchange
  readonly tokens: TokenClient
  /** Stops all calls for this time. Resolves when the pause is saved. */
  readonly pause: (waitMs: number) => Promise<void>
  /** Called with the end of each question that was sent, unless its token had expired. Absent: nobody counts them. */
  readonly onPolled?: ((end: QuestionEnd) => void) | undefined
}

export interface StatusCall {
  readonly identifier: string
  readonly language: string
  readonly priority: CallPriority
  readonly spender: CallSpender
  readonly giveUpAtMs: number | null
  readonly deadline: Deadline
}

/** The outcome of a poll: a `CarrierAnswer`, with more facts about a failure for the log and the breaker. */
export type StatusOutcome =
  | Exclude<CarrierAnswer, { kind: 'unavailable' }>
  | {
      readonly kind: 'unavailable'
      readonly reason: UnavailableReason
      readonly retryAfterMs?: number | undefined
      readonly detail: string
      /** See `LastFailure`. */
      readonly said?: string
      /** The URL of the token endpoint, if that endpoint gave no token. */
      readonly url?: string
      /** Whether the failure may count against the carrier. False: the call was not made, or was cut off too early. */
      readonly conclusive: boolean
      /** Whether this question may have caused the failure. If so, the carrier may still answer questions about other parcels. */
      readonly ofQuestion?: boolean
    }

/** Codes of failures before the question is sent. The question cannot have caused them. */
const UNREACHED: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** The carrier answered 401 (`unauthorized`) or 403 (`forbidden`) to this token. */
type Denied =
  | { readonly kind: 'unauthorized'; readonly token: string }
  | { readonly kind: 'forbidden'; readonly token: string; readonly said: string }

const REJECTED = { kind: 'unavailable', reason: 'rejected', conclusive: true, ofQuestion: true } as const
const forbidden = ({ said }: { readonly said: string }): StatusOutcome => ({ ...REJECTED, detail: 'status 403', said })

/**
 * Asks the carrier. After a 401, gets a new token and asks once more, unless the credentials count as refused. Some carriers say 403 when a token
 * has expired, so after a 403 the token client may get a new token too.
 */
export async function askStatus(ports: StatusPorts, call: StatusCall): Promise<StatusOutcome> {
  const { tokens } = ports
  const { signal } = call.deadline
  const first = await tokens.get(signal)
  if (first.kind === 'none') return { ...first, kind: 'unavailable' }
  const outcome = await askWith(ports, call, first.token)
  if (outcome.kind === 'forbidden') {
    const token = await tokens.doubt(outcome.token, signal)
    return token === null ? forbidden(outcome) : settle(tokens, await askWith(ports, { ...call, spender: 'repeat' }, token))
  }
  if (outcome.kind !== 'unauthorized') return outcome
  const hopeless = tokens.isRationed() && tokens.current() === outcome.token
  const second = hopeless ? tokens.refuse(outcome.token) : await tokens.renew(outcome.token, signal)
  if (second.kind === 'none') return { ...second, kind: 'unavailable' }
  return settle(tokens, await askWith(ports, { ...call, spender: 'repeat' }, second.token))
}

/** Asks in a single call: repeats nothing, and takes a 401 for a refusal of the question, because the token is new. */
export async function askOnce(ports: StatusPorts, call: StatusCall): Promise<StatusOutcome> {
  const token = await ports.tokens.get(call.deadline.signal)
  if (token.kind === 'none') return { ...token, kind: 'unavailable' }
  const outcome = await askWith(ports, call, token.token, (ask) => ask())
  if (outcome.kind === 'unauthorized') return { ...REJECTED, detail: 'status 401' }
  return outcome.kind === 'forbidden' ? forbidden(outcome) : outcome
}

function settle(tokens: TokenClient, outcome: StatusOutcome | Denied): StatusOutcome {
  if (outcome.kind === 'forbidden') return forbidden(outcome)
  return outcome.kind === 'unauthorized' ? { ...tokens.refuse(outcome.token), kind: 'unavailable' } : outcome
}

/** Requests `GET {baseUrl}/v1/status/{identifier}/all` with a bearer token (spec, "Endpoints"). */
async function askWith(
  ports: StatusPorts,
  call: StatusCall,
  obtained: string,
  repeated: typeof withQuickRetries = withQuickRetries,
): Promise<StatusOutcome | Denied> {
  const { baseUrl, exchange, tokens } = ports
  const { identifier, language, priority, spender, giveUpAtMs, deadline } = call
  let token = obtained
  const spend = spentBy(spender)
  const ask = async (): Promise<Answered | Failed> => {
    const answer = await exchange({
      method: 'GET',
      url: `${baseUrl}/v1/status/${encodeURIComponent(identifier)}/all?language=${encodeURIComponent(language)}`,
      headers: () => {
        // The token may have been replaced while this call was queued.
        token = tokens.current() ?? token
        return { accept: 'application/json', 'accept-encoding': 'identity', authorization: `Bearer ${token}` }
      },
      bodyBytesMax: BODY_BYTES_MAX,
      priority,
      spender: spend(),
      giveUpAtMs,
      deadline,
    })
    // What an answer with status 200 is worth shows when it is parsed.
    const end = answer.kind === 'answered' ? questionEndOf(answer) : answer.conclusive ? 'failed' : null
    if (end !== null) ports.onPolled?.(end)
    return answer
  }
  const answer = await repeated(ask, deadline.signal)
  if (answer.kind === 'failed') {
    const { reason, detail, conclusive } = answer
    const retryAfterMs = reason === 'timeout' && !conclusive ? CUT_RETRY_MS : answer.retryAfterMs
    return { kind: 'unavailable', reason, retryAfterMs, detail, conclusive, ofQuestion: !UNREACHED.has(detail) }
  }
  if (answer.status === 401) return { kind: 'unauthorized', token }
  if (answer.status === 403) return { kind: 'forbidden', token, said: unnamedLine(answer.body) }
  if ([200, 404, 410].includes(answer.status)) tokens.prove(token)
  return await readAnswer(answer, call, ports)
}

async function readAnswer(answer: Answered, call: StatusCall, { pause, clock, onPolled }: StatusPorts): Promise<StatusOutcome> {
  const { status, body, askedAtMs } = answer
  if (status === 200) {
    const { identifier: asked, language } = call
    const reading = parseAllAnswer(body, { asked, language, contentLanguage: answer.header('content-language'), askedAtMs })
    onPolled?.(!reading.ok ? 'failed' : answer.tookMs > SLOW_MS ? 'slow' : 'answered')
    return reading.ok
      ? { kind: 'found', observation: reading.observation }
      : { kind: 'unavailable', reason: 'bad_response', detail: reading.reason, conclusive: true, ofQuestion: true }
  }
  if (status === 404 || status === 410) return { kind: 'not_found' }
  const waitMs = parseRetryAfter(answer.header('retry-after'), clock.now()) ?? (status === 429 ? retryAfterDefaultMs : null)
  // Status 429, or 503 with `Retry-After`, concerns the service and not the parcel. So all calls pause.
  const isOfService = waitMs !== null && (status === 429 || status === 503)
  if (isOfService) await pause(waitMs)
  const trouble = { reason: reasonOf(status), retryAfterMs: waitMs ?? undefined, detail: `status ${status}`, said: unnamedLine(body) }
  return { kind: 'unavailable', ...trouble, conclusive: true, ofQuestion: !isOfService }
}

function reasonOf(status: number): UnavailableReason {
  if (status === 429) return 'rate_limited'
  if (status >= 500) return 'server_error'
  if (status >= 400) return 'rejected'
  return status >= 300 ? 'redirect' : 'bad_response'
}
