import { spanText } from '../../../domain/amounts.ts'
import type { CarrierState } from '../../../domain/polling/carrier-answer.ts'
import { html, type Part } from '../html.ts'
import { relativeTime } from '../times.ts'

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
