import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context } from 'koa'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { AppError } from '../../domain/errors.ts'
import type { App, Authenticate, Scope, Visitor } from '../../flow/admin/tokens/authenticate.ts'
import { proveConnection } from './connection-slots.ts'
import { type AddressOf, headerValues, networkOf } from './request-headers.ts'

/** A bearer token as in RFC 6750, 2.1, with a limit on its length. The scheme may be in upper or lower case (RFC 9110, 11.1). */
const BEARER = /^bearer ([\w\-.~+/]{1,4096}=*)$/i

/** Returns the calling app. Throws `unauthorized`, `forbidden` or, after too many bad tokens from one address, `too_many_requests`. */
export type Authorize = (ctx: Context, scope: Scope) => Promise<App>

/**
 * Watches whether the token of a long request, such as a stream, still grants the scope. Calls `end` when the token no longer grants it.
 * Resolves with a function that ends the watch.
 */
export type HoldAccess = (ctx: Context, scope: Scope, end: () => void) => Promise<() => void>

export function createAuthorize(authenticate: Pick<Authenticate, 'authorize'>, countFailure: CountFailure): Authorize {
  return async (ctx, scope) => {
    try {
      const app = await authenticate.authorize(tokenOf(ctx), scope)
      proveConnection(ctx.req)
      return app
    } catch (error) {
      throw error instanceof AppError && error.code === 'unauthorized' ? await countFailure(ctx.req, error) : error
    }
  }
}

export function createHoldAccess(authenticate: Pick<Authenticate, 'hold'>): HoldAccess {
  return async (ctx, scope, end) => await authenticate.hold(tokenOf(ctx), scope, end)
}

/** Returns the token. Throws `unauthorized` for no or several `Authorization` headers. Node's `headers` would show only the first of several. */
function tokenOf(ctx: Context): string {
  const [header, ...more] = headerValues(ctx.req, 'authorization')
  const token = header === undefined || more.length > 0 ? undefined : BEARER.exec(header)?.[1]
  if (token === undefined) throw new AppError('unauthorized', 'Send one Authorization header with a bearer token.')
  return token
}

/** Returns a controller that aborts when the client disconnects. If the client is gone already, no event follows, so it aborts at once. */
export function leavingOf(res: ServerResponse): AbortController {
  const leaving = new AbortController()
  if (res.closed) leaving.abort()
  else res.once('close', () => leaving.abort())
  return leaving
}

/** Counts a failed request. Returns the error to answer with: `failure` or, if its address has failed too often, `too_many_requests`. */
export type CountFailure = (req: IncomingMessage, failure: AppError) => Promise<AppError>

export type VisitorOf = (req: IncomingMessage, username: string) => Visitor

/** The most counts in memory. Without a limit, an attacker with many addresses and user names could fill the memory. */
const COUNTS_MAX = 16_384

/** Creates the count of failed signatures, tokens and passwords by address. Only failed requests are counted, so no valid request is refused. */
export function createCountFailure(perMinute: PerMinute, addressOf: AddressOf): CountFailure {
  const countOf = createCounts()
  return async (req, failure) => {
    const retryAfterMs = await perMinute(countOf(networkOf(addressOf(req))))
    if (retryAfterMs === null) return failure
    return new AppError('too_many_requests', 'Too many failures from this address. Try again later.', { retryAfterMs, cause: failure })
  }
}

/**
 * Creates two counts of wrong passwords: by address with user name, and by address. If either is over the limit, no password is checked until the
 * minute is over. Otherwise an attacker could keep guessing, and each check costs the relay more work than the client. Logins from other
 * addresses are not affected.
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
 * Creates a function that maps any text to the name of one of `COUNTS_MAX` counts, so several texts may share a count. Because of the salt,
 * attackers cannot find a text that shares the count of a certain other client.
 */
function createCounts(): (of: string) => string {
  const salt = randomBytes(16)
  return (of) => String(createHmac('sha256', salt).update(of).digest().readUInt32BE() % COUNTS_MAX)
}

/** Adds one to the count of a key. Returns null while the count is within the limit, else the milliseconds until it starts again at 0. */
type PerMinute = (key: string) => Promise<number | null>

/** Limits failures by key. A try is counted before its result is known, so that many tries at the same time cannot exceed the limit. */
interface Tries {
  readonly begin: PerMinute
  /** Takes back the count of a try that succeeded. */
  forgive(key: string): Promise<void>
}

/** Creates a limit of failures for each key and minute. Call the returned function only after a failure, so that no success is counted. */
export function createPerMinute(limit: number): PerMinute {
  return createTries(limit).begin
}

function createTries(limit: number): Tries {
  const limiter = new RateLimiterMemory({ points: limit, duration: 60 })
  return {
    async begin(key) {
      try {
        await limiter.consume(key)
        return null
      } catch (refusal) {
        if (refusal instanceof RateLimiterRes) return Math.max(1000, refusal.msBeforeNext)
        throw refusal
      }
    },
    async forgive(key) {
      await limiter.reward(key)
    },
  }
}
