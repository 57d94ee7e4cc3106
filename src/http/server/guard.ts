import type { IncomingMessage } from 'node:http'
import type { Middleware } from 'koa'
import { AppError } from '../../domain/errors.ts'
import { EdgeError, noSuchAddress } from './errors.ts'
import { headerValues } from './header-values.ts'

const HEADERS_MAX = 1000
/** The scheme and host of a request target such as `http://host/path`, which a server must accept (RFC 9112, 3.2.2). The guard ignores both. */
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i

/** Refuses requests that Node accepts, although a proxy may read them differently: odd transfer codings, two Host headers, too many headers. */
export function guardRequests(): Middleware {
  return (ctx, next) => {
    const { req } = ctx
    const ambiguity = ambiguityOf(req)
    if (ambiguity !== null) {
      ctx.set('Connection', 'close')
      throw ambiguity
    }
    const target = req.url ?? '/'
    if (!target.startsWith('/')) {
      const path = target.replace(ABSOLUTE_FORM, '')
      if (path === target) throw noSuchAddress()
      req.url = path.startsWith('/') ? path : `/${path}`
    }
    return next()
  }
}

function ambiguityOf(req: IncomingMessage): Error | null {
  if (req.rawHeaders.length > HEADERS_MAX * 2)
    return new EdgeError('headers_too_large', `A request may have at most ${HEADERS_MAX} headers.`)
  const coding = req.headers['transfer-encoding']
  if (coding !== undefined && (coding.trim().toLowerCase() !== 'chunked' || req.httpVersionMinor === 0)) {
    return new AppError('bad_request', 'The only supported transfer coding is "chunked".')
  }
  return headerValues(req, 'host').length > 1 ? new AppError('bad_request', 'Send exactly one Host header.') : null
}
