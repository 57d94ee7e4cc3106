import { createHmac, randomBytes } from 'node:crypto'

/** The form of tokens: a JWT, which names its expiry in `exp`, or random text. */
export type TokenForm = 'opaque' | 'jwt'

export interface Tokens {
  issue(): string
  isGood(token: string): boolean
  revoke(): void
  issued(): number
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

function jwt(key: Buffer, issuedMs: number, lifetimeMs: number, id: number): string {
  const head = encode({ alg: 'HS256', typ: 'JWT' })
  const claims = encode({ iat: Math.floor(issuedMs / 1000), exp: Math.floor((issuedMs + lifetimeMs) / 1000), jti: String(id) })
  return `${head}.${claims}.${createHmac('sha256', key).update(`${head}.${claims}`).digest('base64url')}`
}

/** Creates the issuer of tokens. A token is good if it was issued here and is younger than the lifetime, whatever its `exp` says. */
export function createTokens(form: TokenForm, lifetimeMs: () => number, now: () => number): Tokens {
  const key = randomBytes(32)
  const issuedAtMs = new Map<string, number>()
  let issued = 0
  return {
    issue: () => {
      issued += 1
      const token = form === 'jwt' ? jwt(key, now(), lifetimeMs(), issued) : randomBytes(24).toString('base64url')
      issuedAtMs.set(token, now())
      return token
    },
    isGood: (token) => {
      const atMs = issuedAtMs.get(token)
      return atMs !== undefined && now() - atMs < lifetimeMs()
    },
    revoke: () => issuedAtMs.clear(),
    issued: () => issued,
  }
}
