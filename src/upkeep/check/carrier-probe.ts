import type { CallFailure, RemoteCarrier } from '../../core/carrier/call/carrier-client.ts'
import { causeIn } from '../../core/carrier/call/carrier-log.ts'
import { type CarrierState, lacksAnswer, type UnavailableReason } from '../../core/domain/polling/carrier-answer.ts'
import { carrierRemedy, lastFailureText } from '../../core/domain/polling/carrier-failure-words.ts'
import { carrierStanding } from '../../core/domain/polling/carrier-standing.ts'
import { reasonOfCode, tlsFaultOf, tlsMeaning, tlsRemedy } from '../../core/domain/system-reason.ts'
import { failed, judgeClock, ok, skipped, type Verdict, warning } from './check.rules.ts'
import type { Probe } from './manage-check.ts'

export interface CarrierProbeOptions {
  /** The language of polls. */
  readonly language: string
  /** Returns a parcel that the carrier has answered before; null: none is known. */
  readonly known: () => Promise<string | null>
  /** The setting that says where the carrier issues tokens. */
  readonly loginSetting: LoginSetting
  /** A text to add to the line of the login. */
  readonly note?: string
}

type LoginSetting = 'upstream.authUrl' | 'upstream.baseUrl'

/** Returns the setting that is in force: without `authUrl`, tokens are asked for below `baseUrl`. */
export function loginSettingOf({ authUrl, baseUrl }: { readonly authUrl: string; readonly baseUrl: string }): LoginSetting {
  return authUrl === `${baseUrl}/auth/token` ? 'upstream.baseUrl' : 'upstream.authUrl'
}

/**
 * Makes the probe that logs in at the carrier, asks it one question, and compares the clocks. That is two calls of the budget at most, because a
 * login alone does not show that questions are answered.
 */
export function carrierProbe(
  carrier: Pick<RemoteCarrier, 'logIn' | 'tryQuestion' | 'state' | 'aheadMs'>,
  { language, known, loginSetting, note = '' }: CarrierProbeOptions,
): Probe {
  return {
    name: 'credentials',
    subject: null,
    async look() {
      const failure = await carrier.logIn()
      const login = failure === null ? ok(`The carrier gives a token.${note}`) : describe(failure, loginSetting)
      const question =
        failure === null ? await ask(carrier, language, await known()) : skipped('Nothing was asked, because there is no token.')
      return [
        { name: 'credentials', subject: null, ...login },
        { name: 'question', subject: null, ...question },
        { name: 'clock', subject: null, ...judgeClock(carrier.aheadMs()) },
      ]
    },
  }
}

/** Formed like the number of an international parcel, with its check digit, but of a country that does not exist. */
const NOBODYS = 'ZZ000000005ZZ'

/** A carrier may answer a number that nobody has with an error, and all others well. So only a question about a known parcel can fail so. */
async function ask(carrier: Pick<RemoteCarrier, 'tryQuestion' | 'state'>, language: string, known: string | null): Promise<Verdict> {
  const { sinceMs } = carrier.state().breaker
  const failure = await carrier.tryQuestion({ identifier: known ?? NOBODYS, language, mayCount: known !== null })
  const about = known === null ? `a number that nobody has (${NOBODYS})` : 'a parcel that it has answered before'
  if (failure === null) return judgeAnswer(carrier.state(), about)
  const { reason, detail } = failure
  const last = { reason, ...causeIn(detail) }
  const isNamed = last.tls !== undefined || last.status !== undefined
  const why = isNamed ? lastFailureText(last) : `${lastFailureText(last)} (${reasonOfCode(detail)})`
  if (lacksAnswer(reason) === null) return skipped(`No answer to a question about ${about}: ${why}.`)
  if (known === null && (reason === 'server_error' || (reason === 'rejected' && !DENIALS.has(detail))))
    return warning(
      `No answer to a question about ${about}: ${why}. Perhaps it has no other answer to such a number: check again when a parcel was polled.`,
    )
  const since = sinceMs === undefined ? '' : ` It has answered no question since ${new Date(sinceMs).toISOString()}.`
  return failed(`No answer to a question about ${about}: ${why}. ${carrierRemedy(last)}${since}`)
}

/** While parcels are refused, an answer about a number that nobody has does not show that the carrier answers. */
function judgeAnswer(state: CarrierState, about: string): Verdict {
  const { kind } = carrierStanding(state)
  if (state.lastFailure === null || (kind !== 'failing' && kind !== 'troubled')) return ok(`The carrier answers a question about ${about}.`)
  const why = lastFailureText(state.lastFailure)
  return failed(
    `The carrier answers a question about ${about}, but refuses those about parcels: ${why}. ${carrierRemedy(state.lastFailure)}`,
  )
}

/** With these answers a carrier denies everything, whatever is asked. */
const DENIALS: ReadonlySet<string> = new Set(['status 401', 'status 403'])

/** In these sentences, `LOGIN` stands for the setting that says where the carrier issues tokens. */
const REASONS: Readonly<Record<UnavailableReason, string>> = {
  budget: 'No call is left in the budget',
  resting: 'The carrier failed so often that the relay asks it nothing for a while',
  credentials: 'The carrier refuses the login: correct upstream.username and upstream.password',
  timeout: 'The carrier did not answer within upstream.timeout. Check LOGIN, and look for a firewall',
  network: 'The carrier cannot be reached. Check LOGIN, and look for a firewall',
  rate_limited: 'The carrier has had too many calls',
  server_error: 'The carrier fails',
  redirect: 'The carrier redirects: name the final address in LOGIN',
  bad_response: 'The answer does not look like one of the carrier. Check LOGIN',
  token_bad_response: 'The answer contains no token. Check LOGIN',
  rejected: 'The carrier refuses the request',
}

function describe({ reason, detail }: CallFailure, loginSetting: LoginSetting): Verdict {
  // This is no fault of the deployment: other calls have used up the budget, or fill the queue.
  if (reason === 'budget') return skipped(`${REASONS[reason]} (${detail}).`)
  const fault = tlsFaultOf(detail)
  if (fault !== null) return failed(`No token was asked for: ${tlsMeaning(fault, 'the carrier')}. ${tlsRemedy(fault, 'upstream.caFile')}`)
  return failed(`${REASONS[reason].replace('LOGIN', loginSetting)} (${reasonOfCode(detail)}).`)
}
