import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { AppError } from '../domain/errors.ts'
import type { AddressOf } from './client-address.ts'
import type { PerMinute } from './per-minute.ts'

/** Gives the failure to answer with: the one that happened, or `too_many_requests` once an address has failed too often. */
export type CountFailure = (req: IncomingMessage, failure: AppError) => Promise<AppError>

/** Counts failed proofs (signatures, tokens, passwords) per address. It is asked only after a proof failed, so it can lock nobody out. */
export function createCountFailure(perMinute: PerMinute, addressOf: AddressOf): CountFailure {
  return async (req, failure) => {
    const retryAfterMs = await perMinute(network(addressOf(req)))
    if (retryAfterMs === null) return failure
    return new AppError('too_many_requests', 'Too many failures from this address. Try again later.', { retryAfterMs, cause: failure })
  }
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
