import { StorageFailure, systemCode } from '../../core/domain/errors.ts'

/**
 * The codes of a serialization failure, a deadlock, a duplicate key and a division by zero, all caused by another transaction. A duplicate
 * key: the other transaction was the first to insert an identifier, a content or a push. The relay's statements divide by zero on purpose if
 * another transaction has changed what this transaction relied on.
 */
const CONFLICTS = ['40001', '40P01', '23505', '22012']

/** Whether another transaction made this one fail, so that this one may succeed if it begins again. */
export function isConflict(error: unknown): boolean {
  return CONFLICTS.includes(systemCode(error) ?? '')
}

/** Makes an error for which `isConflict` is true. A transaction that notices a conflict itself throws it, to begin again. */
export function metAnother(message: string): Error {
  return Object.assign(new Error(message), { code: '40001' })
}

/** Only this conflict can also be caused by a wrong request. */
const DUPLICATE_KEY = '23505'

/**
 * The most attempts of a transaction. With their pauses they take about three seconds. For a duplicate key, which may never go away, they
 * take about one second.
 */
const TRIES_MAX = 60
const TRIES_FOR_KEY_MAX = 20

/** Whether to give up after this attempt, counted from 1. */
export function isEndless(error: unknown, attempt: number): boolean {
  return isConflict(error) && attempt >= (systemCode(error) === DUPLICATE_KEY ? TRIES_FOR_KEY_MAX : TRIES_MAX)
}

/**
 * Makes the error of a transaction that met a conflict at every attempt. A duplicate key at every attempt is the fault of the request.
 * Otherwise the store is too busy.
 */
export function endlessConflict(cause: unknown): Error {
  return systemCode(cause) === DUPLICATE_KEY
    ? new Error('a row with the same key existed at every attempt', { cause })
    : new StorageFailure('the database is too busy: every attempt was in conflict with another transaction', cause)
}
