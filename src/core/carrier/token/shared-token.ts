import { createHash, randomBytes } from 'node:crypto'
import type { TokenRecord, TokenState } from '../../domain/polling/carrier-answer.ts'
import type { Vault } from '../../flow/ports.ts'
import type { SharedToken } from '../../store/polling/shared-carrier.ts'
import { readPassword } from './credentials.ts'

/** A replica claims the right to request a token. The claim lapses after this time, so that another replica can go on if the first is killed. */
export const CLAIM_MS = 5000
/** The vault needs this context to decrypt a token. So another secret that is copied into the token's column is not taken for a token. */
const CONTEXT = 'carrier-token'

/** The token that replicas share through the store, encrypted with the at-rest keys. */
export interface TokenShare {
  /** Reads the token and its state. `token` null: there is no token, or it was obtained with other credentials than ours. */
  read(): Promise<TokenRecord & { readonly token: string | null }>
  /** Claims the right to replace this version, or renews the claim. False: another replica has the claim, or has replaced the version. */
  claim(version: number): Promise<boolean>
  /** Resolves with the version of the new token; null: this replica no longer has the claim. */
  replace(token: string, password: string, state: TokenState): Promise<number | null>
  /** Removes the token when the credentials count as refused. */
  drop(state: TokenState): Promise<void>
  giveUp(state: TokenState): Promise<void>
  /** Notes that the status API has accepted the token. This and `refused` save in the background, and the next `read` waits for that. */
  accepted(version: number): void
  refused(version: number, state: TokenState): void
}

interface Login {
  readonly authUrl: string
  readonly username: string
  readonly password: () => string
}

export function createTokenShare(
  { token: row, vault }: { readonly token: SharedToken; readonly vault: Pick<Vault, 'seal' | 'open'> },
  login: Login,
): TokenShare {
  const holder = randomBytes(8).toString('hex')
  let saved: Promise<unknown> = Promise.resolve()
  // The fingerprint is encrypted together with the token. Otherwise somebody who reads the store could try passwords against the fingerprint.
  const fingerprintOf = (password: string): string =>
    createHash('sha256')
      .update(JSON.stringify([login.authUrl, login.username, password]))
      .digest('base64url')

  /** Ignores failed writes: the next call with the token shows again whether the status API accepts it. */
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
