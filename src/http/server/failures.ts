import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { AppError } from '../../domain/errors.ts'
import type { AddressOf } from './client-address.ts'
import type { PerMinute, Tries } from './per-minute.ts'

/** Returns the failure to answer with: the one that happened, or `too_many_requests` once an address has failed too often. */
export type CountFailure = (req: IncomingMessage, failure: AppError) => Promise<AppError>

/** Called before a password is checked. Throws `too_many_requests` after too many wrong ones; else returns what to call if this one is right. */
export type AdmitLogin = (req: IncomingMessage, username: string) => Promise<() => Promise<void>>

/** Bounds the memory for counts, however many addresses and names an attacker invents. */
const COUNTS_MAX = 16_384

/** Counts failed signatures, tokens and passwords per address. It runs only after a failure, so it never refuses a valid request. */
export function createCountFailure(perMinute: PerMinute, addressOf: AddressOf): CountFailure {
  const countOf = createCounts()
  return async (req, failure) => {
    const retryAfterMs = await perMinute(countOf(network(addressOf(req))))
    if (retryAfterMs === null) return failure
    return new AppError('too_many_requests', 'Too many failures from this address. Try again later.', { retryAfterMs, cause: failure })
  }
}

/**
 * Counts wrong passwords per address and user name. Past the limit no password is checked until the minute is over, because checking would
 * reveal the right one. Logins from other addresses are not affected.
 */
export function createAdmitLogin(tries: Tries, addressOf: AddressOf): AdmitLogin {
  const countOf = createCounts()
  return async (req, username) => {
    const count = countOf(`${network(addressOf(req))} ${username}`)
    const retryAfterMs = await tries.begin(count)
    if (retryAfterMs === null) return () => tries.forgive(count)
    throw new AppError('too_many_requests', 'Too many wrong passwords for this user from this address. Try again later.', { retryAfterMs })
  }
}

/** Maps a name to one of the counts. Names may share a count; the salt makes it impossible to choose a name that shares with another. */
function createCounts(): (of: string) => string {
  const salt = randomBytes(16)
  return (of) => String(createHmac('sha256', salt).update(of).digest().readUInt32BE() % COUNTS_MAX)
}

/** An IPv6 client usually controls a whole /64, so that counts as one address. */
function network(address: string): string {
  if (isIP(address) !== 6) return address
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  const rest = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - groups.length - rest.length) }, () => '0')
  return [...groups, ...zeros, ...rest].slice(0, 4).join(':')
}
