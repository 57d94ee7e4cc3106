import type { UnavailableReason } from './carrier-answer.ts'

const FAILURES: Readonly<Record<UnavailableReason, string>> = {
  budget: 'our own limits allowed no call',
  resting: 'the relay rests after failures',
  credentials: 'it gave no token for our password',
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

/** Describes why a call failed, as a part of a sentence. If only another version of the relay knows the reason, returns its code. */
export function failureText(reason: string): string {
  return TEXTS.get(reason) ?? reason.replaceAll('_', ' ')
}
