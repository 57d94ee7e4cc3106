import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { AppError } from '../../domain/errors.ts'
import type { Visitor } from '../../flow/admin/tokens/authenticate.ts'
import { type AddressOf, networkOf } from './client-address.ts'
import { createTries, type PerMinute } from './per-minute.ts'

/** The failure with which to answer: the one that happened or, when an address has failed too often, `too_many_requests`. */
export type CountFailure = (req: IncomingMessage, failure: AppError) => Promise<AppError>

/** Describes who logs in. Call it with the user name before checking a password. */
export type VisitorOf = (req: IncomingMessage, username: string) => Visitor

/** Limits the memory for counts, however many addresses and names an attacker invents. */
const COUNTS_MAX = 16_384

/** Counts failed signatures, tokens and passwords by address. It runs only after a failure, so it never refuses a valid request. */
export function createCountFailure(perMinute: PerMinute, addressOf: AddressOf): CountFailure {
  const countOf = createCounts()
  return async (req, failure) => {
    const retryAfterMs = await perMinute(countOf(networkOf(addressOf(req))))
    if (retryAfterMs === null) return failure
    return new AppError('too_many_requests', 'Too many failures from this address. Try again later.', { retryAfterMs, cause: failure })
  }
}

/**
 * Counts wrong passwords by address and user name, and by address. Above either limit no password is checked until the minute is over: a
 * check would reveal the right password, and costs the relay more than a try costs the client. Logins from other addresses are not
 * affected.
 */
export function createVisitorOf(limit: number, addressOf: AddressOf): VisitorOf {
  const tries = createTries(limit)
  const countOf = createCounts()
  return (req, username) => {
    const network = networkOf(addressOf(req))
    const counts = [`name ${countOf(`${network} ${username}`)}`, `address ${countOf(network)}`]
    return {
      network,
      isThere: () => !req.socket.destroyed,
      async admit() {
        for (const count of counts) {
          const retryAfterMs = await tries.begin(count)
          if (retryAfterMs !== null) throw tooManyTries(retryAfterMs)
        }
        return async () => {
          for (const count of counts) await tries.forgive(count)
        }
      },
    }
  }
}

function tooManyTries(retryAfterMs: number): AppError {
  return new AppError('too_many_requests', 'Too many wrong passwords from this address. Try again later.', { retryAfterMs })
}

/**
 * Assigns a name to one of the counts. Several names may share a count. The salt keeps attackers from choosing a name that shares
 * another's.
 */
function createCounts(): (of: string) => string {
  const salt = randomBytes(16)
  return (of) => String(createHmac('sha256', salt).update(of).digest().readUInt32BE() % COUNTS_MAX)
}
