import type { CarrierState } from '../../domain/polling/carrier-answer.ts'
import type { CredentialRefusal } from '../../domain/polling/carrier-memory.ts'

/** The last refusal. If another replica was refused, `atMs` and `by` are null, because they are not shared. */
export type LastRefusal = Required<Pick<CredentialRefusal, 'atMs' | 'by' | 'mark'>>

/** The standing of the credentials in use: what operators are told, and whether a refusal counts. */
export interface CredentialStanding {
  /** The state that operators see. */
  state(): CarrierState['credentials']
  /** Whether a refusal counts. If so, attempts are rationed until the status API accepts a token, even if `state` already says otherwise. */
  isRationed(): boolean
  last(): LastRefusal
  /** Another password is in use, so earlier refusals no longer count. */
  begin(): void
  refused(refusal: LastRefusal): void
  /** The token endpoint accepted the password. */
  obtained(): void
  /** Another replica obtained the token in use, after the last refusal. */
  brought(): void
  /** The status API accepted a token. Returns false if that proves nothing, because the token is older than the last refusal. */
  proved(): boolean
  /** Takes over the state that the replicas share. */
  adopt(isRefused: boolean, mark: LastRefusal['mark']): void
}

/** `earlier`: the refusal of an earlier run; null: there was none. */
export function createCredentialStanding(earlier: CredentialRefusal | null): CredentialStanding {
  let state: CarrierState['credentials'] = earlier === null ? 'unknown' : 'refused'
  let isRationed = earlier !== null
  let refusedSinceObtained = false
  let last: LastRefusal = { atMs: earlier?.atMs ?? null, by: earlier?.by ?? null, mark: earlier?.mark ?? null }
  return {
    state: () => state,
    isRationed: () => isRationed,
    last: () => last,
    begin() {
      state = 'unknown'
      isRationed = false
    },
    refused(refusal) {
      state = 'refused'
      isRationed = true
      refusedSinceObtained = true
      last = refusal
    },
    obtained() {
      refusedSinceObtained = false
      // If the status API refused such a token, getting another one shows nothing.
      if (state === 'unknown' || (state === 'refused' && last.by === 'token_endpoint')) state = 'obtained'
    },
    brought() {
      refusedSinceObtained = false
      if (state === 'unknown') state = 'obtained'
    },
    proved() {
      if (refusedSinceObtained) return false
      state = 'accepted'
      isRationed = false
      return true
    },
    adopt(isRefused, mark) {
      if (isRefused !== isRationed) state = isRefused ? 'refused' : 'unknown'
      isRationed = isRefused
      refusedSinceObtained = isRefused
      if (mark?.digest !== last.mark?.digest) last = { atMs: null, by: null, mark }
    },
  }
}
