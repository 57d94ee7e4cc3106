import { type EndedSession, type TokenKeys, verifyingKeys } from '../../../domain/admin/token-keys.ts'
import { AppError } from '../../../domain/errors.ts'
import { digest } from '../../../domain/text.ts'
import type { Memory } from '../../ports.ts'
import type { Relay, Writes } from '../../relay-part.ts'

/** A permission of an app. `status`: it may ask for parcels and read the feed. `admin`: it may operate the relay. */
export type Scope = 'status' | 'admin'

/** An internal app or an operator, as configured. */
export interface App {
  readonly username: string
  /** Argon2 hashes as PHC strings: one, or two while the password is being replaced. */
  readonly passwordHashes: readonly string[]
  readonly scopes: readonly Scope[]
}

/** The content of a token. It does not contain the scopes of the app, which are looked up at each request. */
interface TokenClaims {
  readonly username: string
  /** A digest of the app's password hash. A token becomes invalid when its app or its password is removed. */
  readonly fingerprint: string
  /** When the person logged in, epoch milliseconds; null: the token is not a session. */
  readonly loggedInAtMs: number | null
  /** The id of the session, which all its tokens have. A token without an id has its digest. Null: the token is not a session. */
  readonly session: string | null
}

export interface VerifiedToken extends TokenClaims {
  readonly issuedAtMs: number
  readonly expiresAtMs: number
  /** The name of the key that signed it. */
  readonly keyName: string
}

export interface Tokens {
  sign(claims: TokenClaims, lifetimeMs: number): Promise<string>
  /** Null: the token is not valid. Never throws because of a token's content. */
  verify(token: string): Promise<VerifiedToken | null>
  /** Whether the key that signed a token still verifies tokens. */
  trusts(token: VerifiedToken): boolean
}

export interface AuthenticatePorts extends Pick<Relay, 'clock'> {
  readonly tokens: Tokens
  /** Whether a password matches an argon2 hash. This is expensive, so calls take turns among the visitors, and a call may be refused. */
  readonly verifyPassword: (hash: string, password: string, visitor: Visitor) => Promise<boolean>
  /** Returns a keyed digest of a hash and a password. It serves to recognize a password that was right before. */
  readonly digestPassword: (hash: string, password: string) => string
  /** Digests of passwords that were right. There are two keys for each: the user name, and the visitor's network with the user name. */
  readonly rightPasswords: Memory<string>
  readonly verified: Memory<VerifiedToken>
  /** The sessions that were logged out. Absent: the tokens are not sessions. */
  readonly ended?: EndedSessions
}

/** Remembers which sessions were logged out, for all replicas. */
export interface EndedSessions {
  /** Makes a random id for a new session. */
  readonly makeId: () => string
  readonly end: (ended: EndedSession) => Promise<void>
  readonly among: (sessions: readonly string[]) => Promise<readonly string[]>
  /** Sessions that began earlier have ended, because the store was restored then. Epoch milliseconds. */
  readonly beforeMs: number
}

export interface AuthenticateOptions {
  readonly apps: readonly App[]
  readonly tokenLifetimeMs: number
  /** A session may be renewed until this long after its login; null: the tokens are not sessions. */
  readonly sessionMaxMs: number | null
  /** A hash that matches no password. It is verified for an unknown user, so that the refusal takes as long as for a known user. */
  readonly dummyHash: string
}

export interface Credentials {
  readonly username: string
  readonly password: string
}

/** Who asks for a token. */
export interface Visitor {
  /** The address of the visitor, or its network if one client can have many addresses. */
  readonly network: string
  /**
   * Counts a wrong password in advance. Throws `too_many_requests` after too many. Otherwise resolves with a function that takes the count
   * back. Call it if the password turns out to be right.
   */
  readonly admit: () => Promise<() => Promise<void>>
  /** Whether the visitor still waits for the answer. */
  readonly isThere: () => boolean
}

export interface Session {
  /** The same for all tokens of the session. */
  readonly id: string
  readonly app: App
  /** The token that replaces the sent one; null: the sent token need not be renewed yet. */
  readonly renewed: string | null
}

export type Authenticate = ReturnType<typeof createAuthenticate>

/** Work that a token allows. */
interface Holding {
  readonly claims: VerifiedToken
  readonly scope: Scope
  readonly end: () => void
}

/** Clocks of replicas may differ by this much. */
const AHEAD_MAX_MS = 30_000

/** A session is renewed when this part of its token's lifetime has passed. */
const RENEWED_AFTER = 0.1

/** A token from the future is not valid: the clock was put back after the token was issued, so the token would be valid for too long. */
function isValidAt({ issuedAtMs, expiresAtMs }: VerifiedToken, nowMs: number): boolean {
  return nowMs < expiresAtMs && issuedAtMs <= nowMs + AHEAD_MAX_MS
}

// oxlint-disable-next-line max-lines-per-function -- its verbs share what is remembered of passwords and tokens
export function createAuthenticate(
  { tokens, verifyPassword, digestPassword, rightPasswords, verified, clock, ended }: AuthenticatePorts,
  options: AuthenticateOptions,
) {
  let known = enroll(options.apps)
  const held = new Set<Holding>()

  const isValid = (claims: VerifiedToken) => isValidAt(claims, clock.now()) && tokens.trusts(claims)
  const remembered = (token: string): VerifiedToken | null => {
    const claims = verified.get(token)
    return claims !== undefined && isValid(claims) ? claims : null
  }
  const verifyToken = async (token: string): Promise<VerifiedToken | null> => {
    const before = remembered(token)
    if (before !== null) return before
    const claims = await tokens.verify(token)
    if (claims === null || !isValid(claims)) return null
    verified.set(token, claims)
    return claims
  }
  const appOf = (claims: VerifiedToken | null): App | null => {
    const app = claims === null ? undefined : known.apps.get(claims.username)
    return app !== undefined && claims !== null && known.fingerprintsOf(app).includes(claims.fingerprint) ? app : null
  }

  const isEnded = async ({ session, loggedInAtMs }: VerifiedToken): Promise<boolean> => {
    if (ended === undefined || session === null) return false
    return (loggedInAtMs ?? 0) < ended.beforeMs || (await ended.among([session])).length > 0
  }

  const endUnless = (isAllowed: (holding: Holding) => boolean): void => {
    for (const holding of held) {
      if (isAllowed(holding)) continue
      held.delete(holding)
      holding.end()
    }
  }

  /**
   * Makes the same number of verifications before every refusal. So the time until the refusal does not show which users exist, or whose
   * password is being replaced.
   */
  const verifyAny = async (hashes: readonly string[], password: string, visitor: Visitor): Promise<string | null> => {
    const decoys = Array.from({ length: Math.max(1, known.hashesMax) - hashes.length }, () => options.dummyHash)
    for (const hash of [...hashes, ...decoys]) if ((await verifyPassword(hash, password, visitor)) && hashes.includes(hash)) return hash
    return null
  }

  const checkPassword = async ({ username, password }: Credentials, visitor: Visitor) => {
    const app = known.apps.get(username)
    const hashes = app?.passwordHashes ?? []
    const here = `${visitor.network} ${username}`
    const rightBefore = (key: string) => hashes.find((hash) => rightPasswords.get(key) === digestPassword(hash, password)) ?? null
    const knownHere = rightBefore(here)
    if (app !== undefined && knownHere !== null) return { app, hash: knownHere }
    const forgive = await visitor.admit()
    const hash = rightBefore(username) ?? (await verifyAny(hashes, password, visitor))
    if (app === undefined || hash === null) throw new AppError('unauthorized', 'The username or the password is wrong.')
    for (const key of [here, username]) rightPasswords.set(key, digestPassword(hash, password))
    await forgive()
    return { app, hash }
  }

  return {
    /**
     * Issues a bearer token (spec, "POST /auth/token"). Throws `unauthorized`, with the same message for an unknown user and a wrong
     * password, and `too_many_requests`.
     *
     * A password that was right before is accepted at once if it comes from the same network. From another network it must be admitted like any
     * other password. Otherwise anybody could try many passwords, because their digests are compared fast.
     */
    async issueToken(credentials: Credentials, visitor: Visitor) {
      const { app, hash } = await checkPassword(credentials, visitor)
      const fingerprint = digest(hash)
      const loggedInAtMs = options.sessionMaxMs === null ? null : clock.now()
      const session = loggedInAtMs === null ? null : (ended?.makeId() ?? null)
      return tokens.sign({ username: app.username, fingerprint, loggedInAtMs, session }, options.tokenLifetimeMs)
    },
    /**
     * A session that is used gets a new token now and then, until the session reaches its longest age.
     * Null: the session has ended, or the token is not a session.
     */
    async continueSession(token: string): Promise<Session | null> {
      const claims = await verifyToken(token)
      const app = appOf(claims)
      if (claims === null || app === null || claims.loggedInAtMs === null || claims.session === null || options.sessionMaxMs === null)
        return null
      if (await isEnded(claims)) return null
      const id = claims.session
      const leftMs = claims.loggedInAtMs + options.sessionMaxMs - clock.now()
      const isNew = clock.now() - claims.issuedAtMs < options.tokenLifetimeMs * RENEWED_AFTER
      if (isNew || leftMs <= 0) return { id, app, renewed: null }
      const { username, fingerprint, loggedInAtMs } = claims
      const lifetimeMs = Math.min(options.tokenLifetimeMs, leftMs)
      return { id, app, renewed: await tokens.sign({ username, fingerprint, loggedInAtMs, session: id }, lifetimeMs) }
    },
    /** Logs a session out. Does nothing if the token is not valid. */
    async endSession(token: string) {
      const claims = await verifyToken(token)
      if (claims === null || claims.session === null || ended === undefined) return
      const longestMs = (claims.loggedInAtMs ?? clock.now()) + (options.sessionMaxMs ?? 0)
      await ended.end({ session: claims.session, untilMs: Math.max(longestMs, claims.expiresAtMs) + AHEAD_MAX_MS, nowMs: clock.now() })
      endUnless((holding) => holding.claims.session !== claims.session)
    },
    /** Ends the work whose sessions were logged out. Call it regularly. */
    async endLoggedOut() {
      const sessions = [...new Set([...held].flatMap(({ claims }) => claims.session ?? []))]
      if (sessions.length === 0 || ended === undefined) return
      const gone = new Set(await ended.among(sessions))
      endUnless(({ claims }) => claims.session === null || !gone.has(claims.session))
    },
    /** Throws `unauthorized` for an invalid token and `forbidden` for a missing scope. */
    async authorize(token: string, scope: Scope): Promise<App> {
      const app = appOf(await verifyToken(token))
      if (app === null) throw new AppError('unauthorized', 'The token is not valid, or is no longer valid. Ask for a new one.')
      if (!app.scopes.includes(scope)) throw new AppError('forbidden', `This needs the scope "${scope}".`)
      return app
    },
    /** Does the same as `authorize`, but without waiting, if the token was verified before; null: call `authorize`. */
    recognize(token: string, scope: Scope): App | null {
      const app = appOf(remembered(token))
      return app?.scopes.includes(scope) ? app : null
    },
    /**
     * Watches the token of work that continues after its request was authorized, such as a stream. Calls `end` when the token no longer gives
     * the scope. Resolves with a function to call when the work is over.
     */
    async hold(token: string, scope: Scope, end: () => void): Promise<() => void> {
      const claims = await verifyToken(token)
      if (claims === null || !appOf(claims)?.scopes.includes(scope) || (await isEnded(claims))) {
        end()
        return () => undefined
      }
      const holding = { claims, scope, end }
      held.add(holding)
      return () => void held.delete(holding)
    },
    /** Ends the work whose tokens have expired. Call it regularly. */
    endExpired: () => endUnless(({ claims }) => isValid(claims)),
    /** Tokens of removed apps and of old passwords become invalid at once, even cached ones, and their work ends. */
    replaceApps(apps: readonly App[]) {
      known = enroll(apps)
      endUnless(({ claims, scope }) => appOf(claims)?.scopes.includes(scope) === true)
    },
  }
}

function enroll(apps: readonly App[]) {
  const fingerprints = new Map(apps.map((app) => [app, app.passwordHashes.map(digest)]))
  return {
    apps: new Map(apps.map((app) => [app.username, app])),
    hashesMax: Math.max(0, ...apps.map(({ passwordHashes }) => passwordHashes.length)),
    fingerprintsOf: (app: App) => fingerprints.get(app) ?? [],
  }
}

/** A token contains the name of the key that signed it. */
interface TokenKey {
  readonly name: string
  readonly key: Uint8Array
}

/** The keys that sign tokens, as far as this process knows. Another replica may replace them. */
export type TokenKeyring = ReturnType<typeof createTokenKeyring>

interface TokenKeyringPorts extends Pick<Relay, 'clock'>, Writes<'tokenKeys'> {
  readonly pause: (ms: number) => Promise<void>
  /** Whether other replicas may replace the keys; absent: yes. */
  readonly isShared?: boolean
}

const SEEK_EVERY_MS = 1000

export function createTokenKeyring(keys: TokenKeys, { write, clock, pause, isShared = true }: TokenKeyringPorts) {
  let known = keys
  let current = named(keys.current)
  let sought = Number.NEGATIVE_INFINITY
  let seeking: Promise<void> | null = null

  function replace(next: TokenKeys): void {
    known = next
    current = named(next.current)
  }

  /** Reads the keys from the store again. Rejects if the store does not answer. */
  async function refresh(): Promise<void> {
    replace(await write.tokenKeys())
  }

  /** The key of this name, if it verifies tokens now; null: this process knows no such key. */
  function find(name: string): TokenKey | null {
    if (name === current.name) return current
    return (
      verifyingKeys(known, clock.now())
        .map(named)
        .find((key) => key.name === name) ?? null
    )
  }

  /** Reads the store at most once a second, because anybody can send tokens with made-up names. */
  function refreshInTurn(): Promise<void> {
    const restMs = sought + SEEK_EVERY_MS - clock.monotonic()
    seeking ??= (restMs > 0 ? pause(restMs) : Promise.resolve())
      .then(() => {
        sought = clock.monotonic()
        return refresh()
      })
      .finally(() => {
        seeking = null
      })
    return seeking
  }

  return {
    /** The key that signs new tokens. */
    current: (): TokenKey => current,
    find,
    /** Like `find`, but reads the store for an unknown name. All callers together read at most once a second. */
    async seek(name: string): Promise<TokenKey | null> {
      const found = find(name)
      if (found !== null || !isShared) return found
      await refreshInTurn()
      return find(name)
    },
    refresh,
    replace,
  }
}

/** Names a key by its hash. The hash reveals nothing, because keys are random. */
function named(key: Uint8Array): TokenKey {
  return { key, name: digest(key).slice(0, 11) }
}
