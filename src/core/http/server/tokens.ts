import { decodeProtectedHeader, jwtVerify, SignJWT } from 'jose'
import { digest } from '../../domain/text.ts'
import type { TokenKeyring, Tokens } from '../../flow/admin/tokens/authenticate.ts'
import type { Clock } from '../../flow/ports.ts'

const ALGORITHM = 'HS256'
const ISSUER = 'parcel-relay'

export interface TokensOptions {
  /** The relay's own signing keys, at least 32 bytes each. */
  readonly keyring: Pick<TokenKeyring, 'current' | 'find' | 'seek'>
  readonly clock: Pick<Clock, 'now'>
  /** Keeps API tokens and portal sessions apart, so that an API token opens no page and a session cannot call the API. */
  readonly audience: 'parcel-relay' | 'parcel-relay-portal'
}

/** Signs and verifies tokens as JWTs. The algorithm, issuer, audience and type are fixed, so that a forged token cannot choose a weak check. */
export function createTokens({ keyring, clock, audience }: TokensOptions): Tokens {
  return {
    sign: ({ username, fingerprint, loggedInAtMs, session }, lifetimeMs) => {
      const nowS = Math.floor(clock.now() / 1000)
      const { name, key } = keyring.current()
      return new SignJWT(
        loggedInAtMs === null
          ? { fingerprint }
          : { fingerprint, auth_time: loggedInAtMs / 1000, ...(session === null ? {} : { jti: session }) },
      )
        .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT', kid: name })
        .setIssuer(ISSUER)
        .setAudience(audience)
        .setSubject(username)
        .setIssuedAt(nowS)
        .setExpirationTime(nowS + Math.ceil(lifetimeMs / 1000))
        .sign(key)
    },
    async verify(token) {
      const name = keyNameIn(token)
      const found = name === null ? null : await keyring.seek(name)
      if (found === null) return null
      try {
        const { payload } = await jwtVerify(token, found.key, {
          algorithms: [ALGORITHM],
          issuer: ISSUER,
          audience,
          typ: 'JWT',
          requiredClaims: ['sub', 'iat', 'exp', 'fingerprint'],
          currentDate: new Date(clock.now()),
        })
        const { sub, exp, iat, fingerprint, auth_time: loggedInAtS } = payload
        if (sub === undefined || exp === undefined || iat === undefined || typeof fingerprint !== 'string') return null
        const loggedInAtMs = typeof loggedInAtS === 'number' ? loggedInAtS * 1000 : null
        const session = loggedInAtMs === null ? null : (payload.jti ?? digest(token))
        return { username: sub, fingerprint, loggedInAtMs, session, issuedAtMs: iat * 1000, expiresAtMs: exp * 1000, keyName: found.name }
      } catch {
        return null
      }
    },
    trusts: ({ keyName }) => keyring.find(keyName) !== null,
  }
}

/** Returns the name of the key with which a token claims to be signed. Null: the token names no key. */
function keyNameIn(token: string): string | null {
  try {
    return decodeProtectedHeader(token).kid ?? null
  } catch {
    return null
  }
}
