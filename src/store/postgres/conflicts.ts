import { StorageFailure, systemCode } from '../../domain/errors.ts'

/**
 * A serialization failure and a deadlock: the transaction met another one. A key that is there already, and a division by nothing: another transaction was first
 * with an identifier, a content or a push, or changed the endpoints, and the statement that found it so failed on purpose.
 */
const CONFLICTS = ['40001', '40P01', '23505', '22012']

/** Whether a transaction failed for what another did at the same time; begun again, it finds that done. */
export function isConflict(error: unknown): boolean {
  return CONFLICTS.includes(systemCode(error) ?? '')
}

/** The failure of a transaction that found out by itself that it met another one, so that it is begun again. */
export function metAnother(message: string): Error {
  return Object.assign(new Error(message), { code: '40001' })
}

/** A key that is there already: the only conflict that what was asked may bring about alone. */
const DUPLICATE_KEY = '23505'

/**
 * How many times a transaction is begun that meets others: with its pauses, for some three seconds. One that asks for a key that is there already may never
 * get through, and is given up after a second.
 */
const TRIES_MAX = 60
const TRIES_FOR_KEY_MAX = 20

/** Whether a transaction that met another one at this attempt, counted from 1, is given up. */
export function isEndless(error: unknown, attempt: number): boolean {
  return isConflict(error) && attempt >= (systemCode(error) === DUPLICATE_KEY ? TRIES_FOR_KEY_MAX : TRIES_MAX)
}

/**
 * Why a transaction is given up that met a conflict at every try. Others were in its way for seconds, which is no fault of what was asked: the store is
 * too busy. A key that is there at every try is the fault of what was asked.
 */
export function endlessConflict(cause: unknown): Error {
  return systemCode(cause) === DUPLICATE_KEY
    ? new Error('a key of what was to be stored is there already at every try', { cause })
    : new StorageFailure('the database is too busy: a transaction met others at every try', cause)
}
