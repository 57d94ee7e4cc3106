import { jwtVerify, SignJWT } from 'jose'
import type { Tokens } from '../../flow/admin/authenticate.ts'
import type { Clock } from '../../flow/ports.ts'

const ALGORITHM = 'HS256'
const ISSUER = 'parcel-relay'
const AUDIENCE = 'parcel-relay'

export interface TokensOptions {
  /** The relay's own signing key, at least 32 bytes. */
  readonly key: Uint8Array
  readonly clock: Pick<Clock, 'now'>
}

/** The relay's tokens as JWTs. Algorithm, issuer, audience and type are fixed, so that a token cannot choose how it is checked. */
export function createTokens({ key, clock }: TokensOptions): Tokens {
  return {
    sign: ({ username, fingerprint }, lifetimeMs) => {
      const nowS = Math.floor(clock.now() / 1000)
      return new SignJWT({ fingerprint })
        .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setSubject(username)
        .setIssuedAt(nowS)
        .setExpirationTime(nowS + Math.ceil(lifetimeMs / 1000))
        .sign(key)
    },
    async verify(token) {
      try {
        const { payload } = await jwtVerify(token, key, {
          algorithms: [ALGORITHM],
          issuer: ISSUER,
          audience: AUDIENCE,
          typ: 'JWT',
          requiredClaims: ['sub', 'iat', 'exp', 'fingerprint'],
          currentDate: new Date(clock.now()),
        })
        const { sub, exp, iat, fingerprint } = payload
        if (sub === undefined || exp === undefined || iat === undefined || typeof fingerprint !== 'string') return null
        return { username: sub, fingerprint, issuedAtMs: iat * 1000, expiresAtMs: exp * 1000 }
      } catch {
        return null
      }
    },
  }
}
