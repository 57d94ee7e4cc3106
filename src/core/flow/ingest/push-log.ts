import type { LogDigest } from '../log-digest.ts'

const NOT_STORED = 'pushes were answered 503: they could not be stored'

/** The log messages for outcomes that operators should know about. Other outcomes are only counted. */
const MESSAGES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    signature_invalid: 'pushes were refused: the signature does not match; somebody else sends them, or the key has changed',
    wrong_path: 'pushes were answered 404: they came to another path than webhook.path; parcel-relay status shows to which',
    quarantined: 'pushes were quarantined: they are authentic, but not valid events',
    body_too_large: 'pushes were refused: they are larger than webhook.bodyBytesMax',
    overloaded: 'pushes were answered 503: too many came at once',
    storage_unavailable: NOT_STORED,
  }),
)

export interface PushCauses {
  /** The addresses whose signatures did not match. */
  readonly senders?: readonly string[]
  /** Why pushes were quarantined. */
  readonly reasons?: readonly string[]
}

/** Logs refused and quarantined pushes, at most one line per minute and outcome. */
export interface PushLog {
  /** Counts pushes with an outcome. */
  add(outcome: string, count: number, causes?: PushCauses): void
  /** Logs the last count of pushes that could not be stored. Call it when pushes can be stored again. */
  storedAgain(): void
}

export function createPushLog(digest: LogDigest): PushLog {
  return {
    add(outcome, count, { senders = [], reasons = [] } = {}) {
      const message = MESSAGES.get(outcome)
      if (message === undefined) return
      digest.add(message, count, outcome === 'signature_invalid' ? { senders } : outcome === 'quarantined' ? { reasons } : {})
    },
    storedAgain: () => digest.report(NOT_STORED),
  }
}
