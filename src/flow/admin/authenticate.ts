import { digest } from '../../domain/digest.ts'
import { AppError } from '../../domain/errors.ts'
import type { Clock, Memory } from '../ports.ts'

/** `status`: may ask for parcels and read the feed. `admin`: may operate the relay. */
export type Scope = 'status' | 'admin'

/** Who may ask: an internal app or an operator, as configured. */
export interface App {
  readonly username: string
  /** An argon2 hash as a PHC string. */
  readonly passwordHash: string
  readonly scopes: readonly Scope[]
}

/** What a token says. It names the app and the password it was issued for; what the app may do is looked up when it asks. */
interface TokenClaims {
  readonly username: string
  /** Of the app's password hash: a token outlives neither its app nor its password. */
  readonly fingerprint: string
}

/** A token that was issued by this relay and has not expired. */
export interface VerifiedToken extends TokenClaims {
  readonly expiresAtMs: number
}

/** Makes and reads signed tokens. */
export interface Tokens {
  sign(claims: TokenClaims, lifetimeMs: number): Promise<string>
  /** Null for everything that is not a valid token of ours; never throws for what a token holds. */
  verify(token: string): Promise<VerifiedToken | null>
}

export interface AuthenticatePorts {
  readonly tokens: Tokens
  /** Whether a password belongs to an argon2 hash. */
  readonly verifyPassword: (hash: string, password: string) => Promise<boolean>
  /** Tokens whose signature was checked before, and that were good. */
  readonly verified: Memory<VerifiedToken>
  readonly clock: Clock
}

export interface AuthenticateOptions {
  readonly apps: readonly App[]
  readonly tokenLifetimeMs: number
  /** A hash nobody has the password of: an unknown user costs the same time as a wrong password. */
  readonly dummyHash: string
}

export interface Authenticate {
  /** A bearer token (spec, "POST /auth/token"). Throws `unauthorized`, in the same words whether the user or the password is wrong. */
  issueToken(credentials: { readonly username: string; readonly password: string }): Promise<string>
  /** The app a token stands for. Throws `unauthorized` for a bad token and `forbidden` for a missing scope. */
  authorize(token: string, scope: Scope): Promise<App>
  /** The same at once, for a token whose signature was checked before; null: `authorize` has to say. */
  recognize(token: string, scope: Scope): App | null
  /** Takes a reloaded list: who is gone or has another password is out at once, remembered tokens included. */
  replaceApps(apps: readonly App[]): void
}

/** Builds the verbs that say who asks. */
export function createAuthenticate(
  { tokens, verifyPassword, verified, clock }: AuthenticatePorts,
  options: AuthenticateOptions,
): Authenticate {
  let known = enroll(options.apps)

  const remembered = (token: string): VerifiedToken | null => {
    const claims = verified.get(token)
    return claims !== undefined && claims.expiresAtMs > clock.now() ? claims : null
  }
  const verifyToken = async (token: string): Promise<VerifiedToken | null> => {
    const before = remembered(token)
    if (before !== null) return before
    const claims = await tokens.verify(token)
    if (claims !== null) verified.set(token, claims)
    return claims
  }
  const appOf = (claims: VerifiedToken | null): App | null => {
    const enrolled = claims === null ? undefined : known.get(claims.username)
    return enrolled !== undefined && enrolled.fingerprint === claims?.fingerprint ? enrolled.app : null
  }

  return {
    async issueToken({ username, password }) {
      const enrolled = known.get(username)
      const matches = await verifyPassword(enrolled?.app.passwordHash ?? options.dummyHash, password)
      if (enrolled === undefined || !matches) throw new AppError('unauthorized', 'The username or the password is wrong.')
      return tokens.sign({ username, fingerprint: enrolled.fingerprint }, options.tokenLifetimeMs)
    },
    async authorize(token, scope) {
      const app = appOf(await verifyToken(token))
      if (app === null) throw new AppError('unauthorized', 'The token is not valid, or no longer. Ask for a new one.')
      if (!app.scopes.includes(scope)) throw new AppError('forbidden', `This needs the scope "${scope}".`)
      return app
    },
    recognize(token, scope) {
      const app = appOf(remembered(token))
      return app?.scopes.includes(scope) ? app : null
    },
    replaceApps(apps) {
      known = enroll(apps)
    },
  }
}

interface Enrolled {
  readonly app: App
  readonly fingerprint: string
}

function enroll(apps: readonly App[]): ReadonlyMap<string, Enrolled> {
  return new Map(apps.map((app) => [app.username, { app, fingerprint: digest(app.passwordHash) }]))
}
