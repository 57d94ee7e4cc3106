import { spanText } from '../../../domain/amounts.ts'
import type { CarrierState, UnavailableReason } from '../../../domain/polling/carrier-answer.ts'
import { html, type Part } from '../html.ts'
import { relativeTime } from '../times.ts'

const FAILURES: Readonly<Record<UnavailableReason, string>> = {
  budget: 'our own limits allowed no call',
  resting: 'the relay rests after failures',
  credentials: 'the password brought no token',
  timeout: 'no answer in time',
  network: 'it could not be reached',
  rate_limited: 'it asked for fewer calls (429)',
  server_error: 'it failed inside (5xx)',
  redirect: 'it redirected, which is not followed',
  bad_response: 'its answer made no sense',
  token_bad_response: 'its login answered without a token',
  rejected: 'it rejected the question',
}

const TEXTS: ReadonlyMap<string, string> = new Map(Object.entries(FAILURES))

/** The reason of a failed call, as a part of a sentence. An event of another version may have a reason that this version does not know. */
export function failureText(reason: string): string {
  return TEXTS.get(reason) ?? reason.replaceAll('_', ' ')
}

/** Says who refused the password, when, and when the relay tries again. */
export function refusalEvidence({ refusal }: CarrierState, nowMs: number): Part {
  if (refusal === null) return null
  const { atMs, by, retryMs } = refusal
  const who =
    by === 'status_api'
      ? 'The login gave a token, and the carrier refused it (401)'
      : by === 'token_endpoint'
        ? 'The carrier’s login refused the user name and password'
        : 'The carrier refused the user name and password'
  return html`${who}${atMs === null ? null : html` ${relativeTime(atMs, nowMs)}`}. ${
    retryMs > 0
      ? `The same password is tried again in ${spanText(retryMs)}, a corrected one at once.`
      : 'It is tried again with the next call.'
  }`
}
