import type { RefusalSamples } from '../../../upkeep/refusals/explain-refusals.ts'
import { AppError } from '../../domain/errors.ts'
import type { RecordOutcome } from '../../domain/history/recording.ts'
import type { IncomingPush } from '../../domain/ingest/inbox.ts'
import { isCheckPush, type ParseEvent, parsePush } from '../../domain/ingest/parse-push.ts'
import type { RefusedPush } from '../../domain/ingest/refused-pushes.ts'
import { isSignature, type Verifier } from '../../domain/ingest/signature.ts'
import type { Part, Relay } from '../relay.ts'

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

/** Remembers the pushes that could not be stored, and notices when they come again. */
interface Comebacks {
  /** Call it when a push with this signature could not be stored. */
  refused(signature: string): void
  /** Call it when a push with this signature was stored. */
  taken(signature: string): void
}

/** Enough for hours of refused pushes. A signature takes some hundred bytes. */
const KEPT_MAX = 20_000
/** A refused push that comes again later than this is not noticed. */
const KEPT_MS = 24 * 3_600_000

interface ComebackPorts extends Part<'clock', 'monotonic'> {
  /** Called when a push is refused for the first time, and when a refused push has come again and was stored. */
  readonly tell: (what: 'first' | 'again') => void
}

/** Recognizes a push by its signature, because the same bytes always have the same signature. */
export function createComebacks({ tell, clock }: ComebackPorts): Comebacks {
  /** The time of the first refusal by signature, the oldest first. */
  const waiting = new Map<string, number>()

  function forgetOld(): void {
    for (const [signature, atMs] of waiting) {
      if (waiting.size < KEPT_MAX && clock.monotonic() - atMs < KEPT_MS) return
      waiting.delete(signature)
    }
  }

  return {
    refused(signature) {
      if (waiting.has(signature)) return
      forgetOld()
      waiting.set(signature, clock.monotonic())
      tell('first')
    },
    taken(signature) {
      if (waiting.size === 0) return
      const atMs = waiting.get(signature)
      if (atMs !== undefined && waiting.delete(signature) && clock.monotonic() - atMs < KEPT_MS) tell('again')
    },
  }
}
