import type { StartTimer } from '../../outbound/deadline.ts'
import { type CredentialOptions, type Credentials, readPassword } from './credentials.ts'
import { CLAIM_MS, type TokenShare } from './shared-token.ts'
import { type NoToken, requestToken, type TokenRequestOptions } from './token-request.ts'

/** While one replica requests a token, the others look for it in the store: every `LOOK_MS`, at most `LOOKS_MAX` times. */
const LOOK_MS = 150
const LOOKS_MAX = 200

export const WAITED_TOO_LONG: NoToken = { kind: 'none', reason: 'timeout', detail: 'token_wait', conclusive: false }
const PASSWORD_UNREADABLE: NoToken = { kind: 'none', reason: 'credentials', detail: 'password_unreadable', conclusive: false }
const STORE_FAILED: NoToken = { kind: 'none', reason: 'budget', detail: 'token_store', conclusive: false, retryAfterMs: 5000 }

type ObtainOptions = TokenRequestOptions & Pick<CredentialOptions, 'password'>

interface Presented {
  readonly result: { readonly kind: 'token'; readonly token: string; readonly password: string } | NoToken
  /** True: the endpoint refused the password or asked for a wait, so the state must be saved for the next run. */
  readonly mustKeep: boolean
}

/** Requests a token, and updates `credentials` with the outcome. */
export async function presentPassword(options: ObtainOptions, credentials: Credentials): Promise<Presented> {
  const password = readPassword(options.password)
  if (password === null) return { result: credentials.troubled(PASSWORD_UNREADABLE), mustKeep: false }
  credentials.present(password)
  const outcome = await requestToken(options, password)
  if (outcome.kind === 'refused') return { result: credentials.notTaken(outcome.detail), mustKeep: true }
  if (outcome.kind === 'trouble') {
    const { failure } = outcome
    if (!failure.conclusive) return { result: failure, mustKeep: false }
    return { result: credentials.troubled(failure), mustKeep: failure.retryAfterMs !== undefined }
  }
  credentials.obtained()
  return { result: { kind: 'token', token: outcome.token, password }, mustKeep: false }
}

interface TogetherOptions extends ObtainOptions {
  readonly share: TokenShare
  readonly credentials: Credentials
  readonly startTimer: StartTimer
}

/** `version`: the shared token's version; null: another replica took over the claim meanwhile, so only this replica has the token. */
type SharedTokenResult = { readonly kind: 'token'; readonly token: string; readonly version: number | null } | NoToken

/**
 * Gets the token that all replicas share. If there is none, or it equals `stale`, one replica requests a new token and the others wait for it. If the
 * endpoint refuses the credentials or asks for a wait, the other replicas wait too.
 */
export async function obtainTogether(options: TogetherOptions, stale: string | null): Promise<SharedTokenResult> {
  const { share, credentials, startTimer } = options
  // This deadline is never started, so its signal is aborted only when the relay stops.
  const stopping = options.openDeadline()
  try {
    for (let look = 0; look < LOOKS_MAX && !stopping.signal.aborted; look++) {
      const { token, version, ...known } = await share.read()
      if (token !== null && token !== stale) {
        credentials.brought(known)
        return { kind: 'token', token, version }
      }
      credentials.adopt(known)
      const closed = credentials.closed()
      if (closed !== null) return closed
      if (await share.claim(version)) return await requestClaimed(options, version)
      await new Promise<void>((resolve) => startTimer(LOOK_MS, resolve))
    }
    return WAITED_TOO_LONG
  } catch {
    return STORE_FAILED
  } finally {
    stopping.end()
  }
}

async function requestClaimed(options: TogetherOptions, version: number): Promise<SharedTokenResult> {
  const { share, credentials } = options
  // The replica that had the claim before may have changed the shared state since we read it, so read it again.
  credentials.adopt(await share.read())
  const closed = credentials.closed()
  if (closed !== null) {
    await share.giveUp(credentials.known())
    return closed
  }
  const { result } = await whileRenewing(
    () => presentPassword(options, credentials),
    () => share.claim(version),
    options.startTimer,
  )
  if (result.kind === 'token') {
    const { token, password } = result
    return { kind: 'token', token, version: await share.replace(token, password, credentials.known()) }
  }
  if (credentials.isRationed()) await share.drop(credentials.known())
  else await share.giveUp(credentials.known())
  return result
}

/** Renews a claim until the work is done. A single failed renewal does no harm, because the next renewal comes before the claim lapses. */
async function whileRenewing<T>(work: () => Promise<T>, renew: () => Promise<unknown>, startTimer: StartTimer): Promise<T> {
  let isOver = false
  let cancel = (): void => undefined
  const renewLater = (): void => {
    if (isOver) return
    cancel = startTimer(
      CLAIM_MS / 3,
      () =>
        void renew()
          .catch(() => undefined)
          .finally(renewLater),
    )
  }
  renewLater()
  try {
    return await work()
  } finally {
    isOver = true
    cancel()
  }
}
