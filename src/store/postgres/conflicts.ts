import { StorageFailure, systemCode } from '../../domain/errors.ts'

/**
 * The codes of errors that another transaction has caused: a serialization failure, a deadlock, a duplicate key (the other one was first
 * with an identifier, a content or a push), and a division by zero. Our own statements divide by zero on purpose when another transaction
 * has changed what this one relied on.
 */
const CONFLICTS = ['40001', '40P01', '23505', '22012']

/** Whether another transaction made this one fail. If it begins again, it sees the changes of the other. */
export function isConflict(error: unknown): boolean {
  return CONFLICTS.includes(systemCode(error) ?? '')
}

/** Makes the error for a transaction that notices such a conflict itself. The transaction then begins again. */
export function metAnother(message: string): Error {
  return Object.assign(new Error(message), { code: '40001' })
}

/** Only this conflict may also come from a wrong request. */
const DUPLICATE_KEY = '23505'

/**
 * The maximum of attempts. With their pauses they take about three seconds, or about one second for a duplicate key, which may never go
 * away.
 */
const TRIES_MAX = 60
const TRIES_FOR_KEY_MAX = 20

/** Whether to give up after this attempt, counted from 1. */
export function isEndless(error: unknown, attempt: number): boolean {
  return isConflict(error) && attempt >= (systemCode(error) === DUPLICATE_KEY ? TRIES_FOR_KEY_MAX : TRIES_MAX)
}

/**
 * The error after a conflict at every attempt. If other transactions were in the way for seconds, the store is too busy. A duplicate key at
 * every attempt is the fault of the request.
 */
export function endlessConflict(cause: unknown): Error {
  return systemCode(cause) === DUPLICATE_KEY
    ? new Error('at every try a key of the new rows existed already', { cause })
    : new StorageFailure('the database is too busy: at every try other transactions were in the way of this one', cause)
}
