import { createHash, randomBytes } from 'node:crypto'
import type { TokenRecord, TokenState } from '../../domain/polling/carrier-token.ts'
import type { SharedToken, TokenVault } from '../../flow/polling/ports.ts'
import { readPassword } from './credentials.ts'

/** If a replica is killed while it requests a token, the others wait this long before one of them requests it. */
export const CLAIM_MS = 5000
/** The token is encrypted for this purpose, so that no other secret can be put into its column. */
const CONTEXT = 'carrier-token'

/** The token that replicas share. Only the at-rest keys can open it. */
export interface TokenShare {
  /** `token` null: there is none, or it was obtained with other credentials. */
  read(): Promise<TokenRecord & { readonly token: string | null }>
  /** Takes or renews the right to replace this version. */
  claim(version: number): Promise<boolean>
  /** Saves the token that was obtained with this password. Returns its version; null: the claim was lost. */
  replace(token: string, password: string, state: TokenState): Promise<number | null>
  /** Removes the token, because the request that held the claim was refused. */
  drop(state: TokenState): Promise<void>
  giveUp(state: TokenState): Promise<void>
  /** `accepted` and `refused` only begin to save what the status API has said about a token. The next `read` waits for that. */
  accepted(version: number): void
  refused(version: number, state: TokenState): void
}

interface Login {
  readonly authUrl: string
  readonly username: string
  readonly password: () => string
}

export function createTokenShare(
  { token: row, vault }: { readonly token: SharedToken; readonly vault: TokenVault },
  login: Login,
): TokenShare {
  const holder = randomBytes(8).toString('hex')
  let saved: Promise<unknown> = Promise.resolve()
  // Encrypt the fingerprint together with the token, so that nobody can try passwords against it.
  const fingerprintOf = (password: string): string =>
    createHash('sha256')
      .update(JSON.stringify([login.authUrl, login.username, password]))
      .digest('base64url')

  /** A failed write does no harm, because the next call with the token shows the same again. */
  function saveSoon(write: () => Promise<void>): void {
    saved = saved.then(write).catch(() => undefined)
  }

  async function open(sealed: string | null): Promise<string | null> {
    const text = sealed === null ? null : await vault.open(sealed, CONTEXT)
    const [of, ...token] = text?.split(' ') ?? []
    const password = readPassword(login.password)
    return token.length > 0 && password !== null && of === fingerprintOf(password) ? token.join(' ') : null
  }

  return {
    async read() {
      await saved
      const record = await row.read()
      return { ...record, token: await open(record.sealed) }
    },
    claim: (version) => row.claim({ holder, version, leaseMs: CLAIM_MS }),
    async replace(token, password, state) {
      return await row.replace({ ...state, holder, sealed: await vault.seal(`${fingerprintOf(password)} ${token}`, CONTEXT) })
    },
    async drop(state) {
      await row.replace({ ...state, holder, sealed: null })
    },
    giveUp: (state) => row.giveUp({ ...state, holder }),
    accepted: (version) => saveSoon(() => row.accepted(version)),
    refused: (version, state) => saveSoon(() => row.refused({ ...state, version })),
  }
}
