import { systemCode } from '../../domain/errors.ts'

/**
 * A serialization failure and a deadlock: the transaction met another one. A key that is there already, and a division by nothing: another transaction was first
 * with an identifier, a content or a push, or changed the endpoints, and the statement that found it so failed on purpose.
 */
const CONFLICTS = ['40001', '40P01', '23505', '22012']

/** Whether a transaction failed for what another did at the same time; begun again, it finds that done. */
export function isConflict(error: unknown): boolean {
  return CONFLICTS.includes(systemCode(error) ?? '')
}

/** A conflict that came again at every try is no conflict: then it is the fault of what was asked. */
export function endlessConflict(cause: unknown): Error {
  return new Error('what was asked of the store meets something else at every try', { cause })
}
