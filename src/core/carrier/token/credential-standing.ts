import type { CredentialRefusal } from '../../domain/polling/call-budget.ts'
import type { CarrierState } from '../../domain/polling/carrier-answer.ts'

/** The last refusal. If another replica received it, `atMs` and `by` are null, because replicas do not share them. */
export type LastRefusal = Required<Pick<CredentialRefusal, 'atMs' | 'by' | 'mark'>>

export interface CredentialStanding {
  /** The state that operators see. */
  state(): CarrierState['credentials']
  /** Whether a refusal limits how often the relay asks for a token, until the status API accepts a token or the password changes. */
  isRationed(): boolean
  last(): LastRefusal
  /** Notes that another password is in use, so that earlier refusals no longer count. */
  begin(): void
  refused(refusal: LastRefusal): void
  /** Notes that the token endpoint has accepted the password. */
  obtained(): void
  /** Notes that, after the last refusal, another replica has obtained the token that is now in use. */
  brought(): void
  /** Notes that the status API has accepted a token. False: the token is older than the last refusal, so it proves nothing about the password. */
  proved(): boolean
  /** Takes over the state that the replicas share. */
  adopt(isRefused: boolean, mark: LastRefusal['mark']): void
}

/** `earlier`: the refusal that an earlier run saved; null: the credentials were not refused. */
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
      // If the status API refused the last token, a new token does not show yet that the credentials work.
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
