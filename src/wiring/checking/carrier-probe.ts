import type { LoginFailure, RemoteCarrier } from '../../carrier/call/carrier-client.ts'
import { failed, judgeClock, ok, skipped, type Verdict } from '../../domain/admin/check.ts'
import type { UnavailableReason } from '../../domain/polling/carrier-answer.ts'
import { reasonOfCode } from '../../domain/system-reason.ts'
import { tlsFaultOf, tlsMeaning, tlsRemedy } from '../../domain/tls-fault.ts'
import type { Probe } from '../../flow/admin/check.ts'

/** Makes the probe that logs in at the carrier (one call of the budget) and compares the clocks. `note`: a text to add to its line. */
export function carrierProbe(carrier: Pick<RemoteCarrier, 'logIn' | 'aheadMs'>, note = ''): Probe {
  return {
    name: 'credentials',
    subject: null,
    async look() {
      const failure = await carrier.logIn()
      const found = failure === null ? ok(`The carrier gives a token.${note}`) : describe(failure)
      return [
        { name: 'credentials', subject: null, ...found },
        { name: 'clock', subject: null, ...judgeClock(carrier.aheadMs()) },
      ]
    },
  }
}

const REASONS: Readonly<Record<UnavailableReason, string>> = {
  budget: 'No call is left in the budget',
  resting: 'The carrier failed so often that the relay asks it nothing for a while',
  credentials: 'The carrier refuses the login: correct upstream.username and upstream.password',
  timeout:
    'The carrier did not answer within upstream.timeout. Check upstream.authUrl (upstream.baseUrl if it is not set), and look for a firewall',
  network: 'The carrier cannot be reached. Check upstream.authUrl (upstream.baseUrl if it is not set), and look for a firewall',
  rate_limited: 'The carrier has had too many calls',
  server_error: 'The carrier fails',
  redirect: 'The carrier redirects: name the final address in upstream.baseUrl or authUrl',
  bad_response: 'The answer does not look like one of the carrier. Check upstream.authUrl (upstream.baseUrl if it is not set)',
  token_bad_response: 'The answer contains no token. Check upstream.authUrl (upstream.baseUrl if it is not set)',
  rejected: 'The carrier refuses the request',
}

function describe({ reason, detail }: LoginFailure): Verdict {
  // This is no fault of the deployment: other calls have used up the budget, or fill the queue.
  if (reason === 'budget') return skipped(`${REASONS[reason]} (${detail}).`)
  const fault = tlsFaultOf(detail)
  if (fault !== null) return failed(`No token was asked for: ${tlsMeaning(fault, 'the carrier')}. ${tlsRemedy(fault, 'upstream.caFile')}`)
  return failed(`${REASONS[reason]} (${reasonOfCode(detail)}).`)
}
