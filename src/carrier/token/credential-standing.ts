import type { CarrierState } from '../../domain/polling/carrier-answer.ts'
import type { CredentialRefusal } from '../../domain/polling/carrier-memory.ts'

/** The last refusal; of one that another replica was told, neither time nor who is known. */
export type LastRefusal = Required<Pick<CredentialRefusal, 'atMs' | 'by' | 'mark'>>

/** What is known of the credentials in use: what operators are told of them, and whether a refusal counts. */
export interface CredentialStanding {
  /** What operators are told. */
  state(): CarrierState['credentials']
  /** Whether a refusal counts: attempts are rationed until the status API accepts a token, whatever operators are told meanwhile. */
  isRationed(): boolean
  last(): LastRefusal
  /** Another password is in use: what was refused says nothing of it. */
  begin(): void
  refused(refusal: LastRefusal): void
  /** The token endpoint took the password. */
  obtained(): void
  /** Another replica obtained the token in use, after the last refusal. */
  brought(): void
  /** The status API accepted a token; false: that says nothing, because the token is older than the last refusal. */
  proved(): boolean
  /** Goes on from what replicas know together. */
  follow(isRefused: boolean, mark: LastRefusal['mark']): void
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
      // The status API refused such a token, so another one shows nothing.
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
    follow(isRefused, mark) {
      if (isRefused !== isRationed) state = isRefused ? 'refused' : 'unknown'
      isRationed = isRefused
      refusedSinceObtained = isRefused
      if (mark?.digest !== last.mark?.digest) last = { atMs: null, by: null, mark }
    },
  }
}
