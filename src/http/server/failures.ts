import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { AppError } from '../../domain/errors.ts'
import type { AddressOf } from './client-address.ts'
import type { PerMinute, Tries } from './per-minute.ts'

/** Gives the failure to answer with: the one that happened, or `too_many_requests` once an address has failed too often. */
export type CountFailure = (req: IncomingMessage, failure: AppError) => Promise<AppError>

/** Asked before a password is looked at. Throws `too_many_requests` once too many were wrong; else returns what to call if this one is right. */
export type AdmitLogin = (req: IncomingMessage, username: string) => Promise<() => Promise<void>>

/** There are as many counts as this, however many addresses and names somebody comes up with. */
const COUNTS_MAX = 16_384

/** Counts failed proofs (signatures, tokens, passwords) per address. It is asked only after a proof failed, so it can lock nobody out. */
export function createCountFailure(perMinute: PerMinute, addressOf: AddressOf): CountFailure {
  const countOf = createCounts()
  return async (req, failure) => {
    const retryAfterMs = await perMinute(countOf(network(addressOf(req))))
    if (retryAfterMs === null) return failure
    return new AppError('too_many_requests', 'Too many failures from this address. Try again later.', { retryAfterMs, cause: failure })
  }
}

/**
 * Counts wrong passwords per address and user name. Past the limit passwords are not looked at until the minute is over: a right one would
 * be told from the wrong ones. Whoever comes from another address is not locked out.
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

/** Names the count that something goes to. Some share one; who shares with whom is another with each start and known to nobody. */
function createCounts(): (of: string) => string {
  const salt = randomBytes(16)
  return (of) => String(createHmac('sha256', salt).update(of).digest().readUInt32BE() % COUNTS_MAX)
}

/** One who has an IPv6 address has all of its /64: they are one to the count. */
function network(address: string): string {
  if (isIP(address) !== 6) return address
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  const rest = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - groups.length - rest.length) }, () => '0')
  return [...groups, ...zeros, ...rest].slice(0, 4).join(':')
}
