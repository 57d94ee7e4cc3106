import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import { AppError } from '../../core/domain/errors.ts'
import type { Authenticate, Credentials, Scope, Session, Visitor } from '../../core/flow/admin/tokens/authenticate.ts'
import { headerValues } from '../../core/http/server/request-headers.ts'

export interface Person {
  readonly name: string
  /** `status`: reads the overview and parcels; `admin`: does everything. */
  readonly scope: Scope
  /** Whether the proxy in front of the portal has logged the person in. */
  readonly isFromProxy: boolean
}

export interface SessionsOptions {
  readonly authenticate: Pick<Authenticate, 'issueToken' | 'continueSession' | 'endSession' | 'hold'>
  /** The relay's id, for the name of the cookie. Cookies ignore ports, so two relays on one host need cookies with different names. */
  readonly relayId: string
  readonly settings: () => SessionSettings
  /** Whether the peer of the connection is a proxy of `listen.internal.trustProxy`. */
  readonly isFromProxy: (req: IncomingMessage) => boolean
}

export interface SessionSettings {
  /** The header in which the proxy names the person whom it has logged in. Null: no header is configured. */
  readonly trustedHeader: string | null
  /** The names in that header that have the scope `admin`. */
  readonly admins: readonly string[]
  /** The path of `portal.publicUrl`: empty, or such as `/relay`, without a slash at the end. */
  readonly prefix: string
  /** Whether browsers reach the portal over https. */
  readonly isSecure: boolean
}

/** The sessions of the portal. A session is a token in a cookie, so any replica can check it without the store. */
export type Sessions = ReturnType<typeof createSessions>

export interface Held {
  /** The id of the session, or the name of a person whom the proxy logs in. */
  readonly session: string
  readonly isAllowed: () => boolean
  readonly release: () => void
}

export function createSessions({ authenticate, relayId, settings, isFromProxy }: SessionsOptions) {
  const name = `parcel-relay-${relayId.slice(0, 8)}`

  const setCookie = (ctx: Context, value: string, more: string): void => {
    const { prefix, isSecure } = settings()
    ctx.append(
      'Set-Cookie',
      `${name}=${value}; Path=${prefix === '' ? '/' : prefix}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}${more}`,
    )
  }

  return {
    /**
     * Returns the person who has sent a request. Null: nobody is logged in. `isUse`: whether the request may renew the session. Throws
     * `forbidden` if the proxy's header is empty, or was sent more than once.
     */
    async personOf(ctx: Context, isUse: boolean): Promise<Person | null> {
      const fromProxy = namedByProxy(ctx.req)
      if (fromProxy !== null) return fromProxy
      const { session } = await validIn(ctx.req)
      if (session === null) return null
      if (isUse && session.renewed !== null) setCookie(ctx, session.renewed, '')
      return personIn(session)
    },
    /** Watches whether the person of a long request, such as a stream, keeps access while it runs. */
    async hold({ req }: Context, person: Person): Promise<Held> {
      if (person.isFromProxy) return { session: person.name, isAllowed: () => isSame(namedByProxy(req), person), release: () => undefined }
      let isAllowed = true
      const { token, session } = await validIn(req)
      const release = await authenticate.hold(token, person.scope, () => {
        isAllowed = false
      })
      return { session: session?.id ?? '', isAllowed: () => isAllowed, release }
    },
    /** Begins a session: sets its cookie. Returns the person. Throws the same errors as `Authenticate.issueToken`. */
    async logIn(ctx: Context, credentials: Credentials, visitor: Visitor): Promise<Person> {
      const token = await authenticate.issueToken(credentials, visitor)
      const session = await authenticate.continueSession(token)
      if (session === null) throw new AppError('unauthorized', 'The app was removed.')
      setCookie(ctx, token, '')
      return personIn(session)
    },
    /** Ends the session: none of its tokens is valid any more, at any replica. */
    async logOut(ctx: Context) {
      setCookie(ctx, '', '; Max-Age=0')
      for (const token of cookiesOf(ctx.req, name)) await authenticate.endSession(token)
    },
  }

  /** Finds the cookie with a session. */
  async function validIn(req: IncomingMessage): Promise<{ readonly token: string; readonly session: Session | null }> {
    for (const token of cookiesOf(req, name)) {
      const session = await authenticate.continueSession(token)
      if (session !== null) return { token, session }
    }
    return { token: '', session: null }
  }

  /** Returns the person whom a trusted proxy names. Null: it sent no such header, or the request did not come through a trusted proxy. */
  function namedByProxy(req: IncomingMessage): Person | null {
    const { trustedHeader, admins } = settings()
    if (trustedHeader === null || !isFromProxy(req)) return null
    const [value, ...more] = headerValues(req, trustedHeader.toLowerCase())
    if (value === undefined) return null
    if (value.trim() === '' || more.length > 0)
      throw new AppError(
        'forbidden',
        `The proxy must name one person in ${trustedHeader}: it sent ${more.length > 0 ? 'several' : 'none'}.`,
      )
    const person = decoded(value).trim()
    return { name: person, scope: admins.includes(person) ? 'admin' : 'status', isFromProxy: true }
  }
}

function personIn({ app: { username, scopes } }: Session): Person {
  return { name: username, scope: scopes.includes('admin') ? 'admin' : 'status', isFromProxy: false }
}

function isSame(now: Person | null, before: Person): boolean {
  return now?.name === before.name && now.scope === before.scope
}

/** Node reads headers as Latin-1. A proxy may send names in UTF-8. */
function decoded(value: string): string {
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : value
}

const COOKIES_MAX = 4

/**
 * Returns the values of a cookie. A browser sends several if the path of `portal.publicUrl` has changed, and any of them may be the one that is
 * valid.
 */
function cookiesOf(req: IncomingMessage, name: string): readonly string[] {
  return headerValues(req, 'cookie')
    .flatMap((header) => header.split(';'))
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1))
    .slice(0, COOKIES_MAX)
}
