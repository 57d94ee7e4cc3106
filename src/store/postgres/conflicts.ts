import { StorageFailure, systemCode } from '../../domain/errors.ts'

/**
 * The codes of errors by which a transaction shows that it met another one: a serialization failure, a deadlock, a duplicate key (another
 * transaction was first with an identifier, a content or a push), and a division by zero, by which our own statements fail on purpose when
 * they find that another transaction has changed what this one relied on.
 */
const CONFLICTS = ['40001', '40P01', '23505', '22012']

/** Whether a transaction failed because of another one at the same time. If it is begun again, it sees the changes of the other. */
export function isConflict(error: unknown): boolean {
  return CONFLICTS.includes(systemCode(error) ?? '')
}

/** Makes the error for a transaction that notices by itself that it met another one. It is then begun again. */
export function metAnother(message: string): Error {
  return Object.assign(new Error(message), { code: '40001' })
}

/** A duplicate key: the only conflict that a request may cause without another transaction. */
const DUPLICATE_KEY = '23505'

/**
 * How many times a transaction is begun when it meets others. With the pauses that takes about three seconds, or about one for a duplicate key,
 * which may never go away.
 */
const TRIES_MAX = 60
const TRIES_FOR_KEY_MAX = 20

/** Whether to give up a transaction that met another one at this attempt, counted from 1. */
export function isEndless(error: unknown, attempt: number): boolean {
  return isConflict(error) && attempt >= (systemCode(error) === DUPLICATE_KEY ? TRIES_FOR_KEY_MAX : TRIES_MAX)
}

/**
 * The error for a transaction that met a conflict at every try. If others were in its way for seconds, the store is too busy. A duplicate key at
 * every try is the fault of the request.
 */
export function endlessConflict(cause: unknown): Error {
  return systemCode(cause) === DUPLICATE_KEY
    ? new Error('at every try a key of the new rows existed already', { cause })
    : new StorageFailure('the database is too busy: at every try other transactions were in the way of this one', cause)
}
