import type { RefusalSamples } from '../../../upkeep/refusals/explain-refusals.ts'
import { AppError } from '../../domain/errors.ts'
import type { RecordOutcome } from '../../domain/history/recording.ts'
import type { IncomingPush } from '../../domain/ingest/inbox.ts'
import { isCheckPush, type ParseEvent, parsePush } from '../../domain/ingest/parse-push.ts'
import type { RefusedPush } from '../../domain/ingest/refused-pushes.ts'
import { isSignature, type Verifier } from '../../domain/ingest/signature.ts'
import type { Part, Relay } from '../relay.ts'
import type { Comebacks } from './comebacks.ts'

/** A push as it came: `body` is not yet decoded, decompressed or parsed (DOMAIN 5.1). */
interface PushRequest {
  readonly body: Uint8Array
  /** All values of the signature header. A push with more than one is refused. */
  readonly signatures: readonly string[]
  readonly contentEncoding: string | null
  /** Describes the sender and the headers of a refused push. */
  readonly origin: () => Pick<RefusedPush, 'address' | 'header'>
}

export interface ReceivePorts extends Pick<Relay, 'clock'>, Part<'meter', 'pushReceived'> {
  readonly verifier: Verifier
  readonly parseEvent: ParseEvent
  /** Resolves only when the push is durable (DOMAIN 5.2). While there is trouble with the disk, it refuses pushes. */
  readonly recorder: { submit(incoming: IncomingPush): Promise<RecordOutcome> }
  /** Throws `storage_unavailable` while the recorder refuses every push. For test pushes of the relay itself, which are not recorded. */
  readonly admit: () => void
  readonly refusals: Pick<RefusalSamples, 'isDue' | 'take'>
  readonly comebacks: Comebacks
}

/** If it resolves, the push is durable and is answered with 2xx. */
export type Receive = (request: PushRequest) => Promise<RecordOutcome | { readonly kind: 'check' }>

/** How long a sender is asked to wait if the store does not say how long. */
const RETRY_AFTER_MS = 5000

/**
 * Creates the function that verifies and records pushes. If it throws `signature_invalid`, nothing is stored. If it throws
 * `storage_unavailable`, the push may not be durable, so the sender must push again; a duplicate does no harm.
 */
export function createReceive({ verifier, parseEvent, recorder, admit, meter, clock, refusals, comebacks }: ReceivePorts): Receive {
  const verified = ({ body, signatures, origin }: PushRequest): number => {
    const signature = onlyOne(signatures)
    const keyIndex = signature === null ? null : verifier.verify(body, signature)
    if (keyIndex !== null) return keyIndex
    if (refusals.isDue()) refusals.take({ ...origin(), body, signatures })
    throw signatureInvalid()
  }

  const record = async (incoming: IncomingPush, [signature = '']: readonly string[]): Promise<RecordOutcome> => {
    try {
      const outcome = await recorder.submit(incoming)
      comebacks.taken(signature)
      return outcome
    } catch (error) {
      comebacks.refused(signature)
      throw error
    }
  }

  return async (request) => {
    const receivedAtMs = clock.now()
    let keyIndex: number | null = null
    let isCheck = false
    try {
      keyIndex = verified(request)
      isCheck = isCheckPush(request.body)
      if (isCheck) {
        admit()
        meter.pushReceived('check', keyIndex)
        return { kind: 'check' }
      }
      const { body, contentEncoding } = request
      const outcome = await record(parsePush({ body, contentEncoding, receivedAtMs, keyIndex }, parseEvent), request.signatures)
      meter.pushReceived(outcome.kind, keyIndex)
      return outcome
    } catch (cause) {
      const failure = cause instanceof AppError ? cause : storageUnavailable(cause)
      // Nothing of the carrier's was refused, so no operator must ask it to send anything again.
      meter.pushReceived(isCheck ? 'check' : failure.code, keyIndex)
      throw failure
    }
  }
}

/**
 * Throws `signature_invalid` unless there is exactly one signature, and it has the form of one. So a push without a signature is refused before
 * its body is read.
 */
export function admitSignature(signatures: readonly string[]): void {
  const signature = onlyOne(signatures)
  if (signature === null || !isSignature(signature)) throw signatureInvalid()
}

function onlyOne(signatures: readonly string[]): string | null {
  return signatures.length === 1 ? (signatures[0] ?? null) : null
}

/** The message is the same for every mistake, so that a sender who guesses learns nothing. */
function signatureInvalid(): AppError {
  return new AppError(
    'signature_invalid',
    'The x-service-hmac-sha256 header must occur exactly once, with the signature of the exact body.',
  )
}

function storageUnavailable(cause: unknown): AppError {
  return new AppError('storage_unavailable', 'The event could not be stored now. Send it again later.', {
    cause,
    retryAfterMs: RETRY_AFTER_MS,
  })
}
