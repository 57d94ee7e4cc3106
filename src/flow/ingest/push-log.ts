import type { LogDigest } from '../log-digest.ts'

/** The outcomes that operators should know about; others are only counted. */
const MESSAGES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    signature_invalid: 'pushes were refused: the signature does not match; somebody else sends them, or the key has changed',
    wrong_path: 'pushes were answered 404: they came to another path than webhook.path; parcel-relay status names it',
    quarantined: 'pushes were quarantined: they are authentic, but not valid events',
    body_too_large: 'pushes were refused: they are larger than webhook.bodyBytesMax',
    storage_unavailable: 'pushes were answered 503: they could not be stored',
  }),
)

/** Logs refused and quarantined pushes, at most one line per minute and outcome. `senders`: the addresses whose signatures did not match. */
export function createPushLog(digest: LogDigest): (outcome: string, count: number, senders?: readonly string[]) => void {
  return (outcome, count, senders) => {
    const message = MESSAGES.get(outcome)
    if (message !== undefined) digest.add(message, count, outcome === 'signature_invalid' ? senders : undefined)
  }
}
