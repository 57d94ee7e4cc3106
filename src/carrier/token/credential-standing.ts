import type { CarrierState } from '../../domain/polling/carrier-answer.ts'
import type { CredentialRefusal } from '../../domain/polling/carrier-memory.ts'

/** The last refusal. If it came to another replica, `atMs` and `by` are null, because they are not shared. */
export type LastRefusal = Required<Pick<CredentialRefusal, 'atMs' | 'by' | 'mark'>>

/** Whether the credentials in use are refused: what operators see, and whether a refusal counts. */
export interface CredentialStanding {
  /** The state that operators see. */
  state(): CarrierState['credentials']
  /** Whether a refusal counts. Then attempts are limited until the status API accepts a token, even if `state` already says otherwise. */
  isRationed(): boolean
  last(): LastRefusal
  /** Notes that another password is in use. Earlier refusals no longer count. */
  begin(): void
  refused(refusal: LastRefusal): void
  /** Notes that the token endpoint has accepted the password. */
  obtained(): void
  /** Notes that another replica has obtained the token in use, after the last refusal. */
  brought(): void
  /** Notes that the status API has accepted a token. False: this proves nothing, because the token is older than the last refusal. */
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
      // If the status API has refused such a token, getting another one shows nothing.
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
