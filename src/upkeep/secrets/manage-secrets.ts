import type { ActionName, Actor, OperatorAction } from '../../core/domain/admin/operator-action.ts'
import type { Replica } from '../../core/domain/admin/replica.ts'
import { parseTokenRotation, type TokenKeys } from '../../core/domain/admin/token-keys.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { Relay, Writes } from '../../core/flow/relay.ts'

export interface ResealReport {
  /** The name of the key that encrypts: the first of `secrets.atRestKeys`, or the key in the key file. */
  readonly key: string
  /** How many secrets had been encrypted with another key. */
  readonly resealed: number
  /** How many secrets had already been encrypted with this key. */
  readonly upToDate: number
  /** The names of the secrets that no key decrypts. */
  readonly unreadable: readonly string[]
}

/** How many secrets in the store are encrypted with the first at-rest key (`upToDate`), and how many with another key (`outdated`). */
export interface SealedCounts {
  readonly upToDate: number
  readonly outdated: number
}

export interface ManageSecretsPorts extends Pick<Relay, 'clock'>, Writes<'rotateTokenKeys' | 'recordAction'> {
  readonly reseal: () => Promise<Omit<ResealReport, 'key'>>
  readonly countSealed: () => Promise<SealedCounts>
  /** Returns the name of the first at-rest key. Throws if this key cannot be read or made. */
  readonly firstKey: () => string
  readonly listReplicas: () => Promise<readonly Pick<Replica, 'name' | 'atRestKeys'>[]>
  /** Makes this process use new keys for the tokens that apps get. */
  readonly useTokenKeys: (keys: TokenKeys) => void
}

export interface ManageSecretsOptions {
  /** The longest lifetime of a token, milliseconds. */
  readonly tokenLifetimeMs: number
}

/** Lets operators replace the relay's own keys (CONTRACT, `/relay/secrets`). */
export interface ManageSecrets {
  count(): Promise<SealedCounts>
  /** Encrypts all secrets in the store with the first at-rest key. Throws `not_resealable` as long as another replica lacks this key. */
  reseal(by: Actor): Promise<ResealReport>
  /**
   * Replaces the key that signs tokens. Earlier tokens stay valid until they expire; with `{ "at": "now" }` they become invalid at once.
   * `validUntilMs`: when the last earlier token expires, epoch milliseconds; null: all earlier tokens are invalid. Throws `bad_request`.
   */
  rotateTokens(body: unknown, by: Actor): Promise<{ readonly validUntilMs: number | null }>
}

export function createManageSecrets(ports: ManageSecretsPorts, { tokenLifetimeMs }: ManageSecretsOptions): ManageSecrets {
  const { write, clock } = ports
  const orderOf = (by: Actor, action: ActionName, detail: object): OperatorAction => ({
    by,
    action,
    atMs: clock.now(),
    target: null,
    detail: { ...detail },
  })

  /** Throws if another replica lacks the key, because that replica could not decrypt the secrets. */
  async function refuseUnlessShared(key: string): Promise<void> {
    const without = (await ports.listReplicas()).filter(({ atRestKeys }) => atRestKeys.length > 0 && !atRestKeys.includes(key))
    if (without.length === 0) return
    const names = without.map(({ name }) => name).join(', ')
    throw new AppError(
      'not_resealable',
      `These replicas do not have the first at-rest key yet: ${names}. Give it to them, and reload them.`,
    )
  }

  return {
    count: ports.countSealed,
    async reseal(by) {
      const key = ports.firstKey()
      await refuseUnlessShared(key)
      const report = { key, ...(await ports.reseal()) }
      await write.recordAction(orderOf(by, 'secrets.resealed', report))
      return report
    },
    async rotateTokens(body, by) {
      const { isAtOnce } = parseTokenRotation(body)
      const keepMs = isAtOnce ? 0 : tokenLifetimeMs
      const action = orderOf(by, 'secrets.token_key_replaced', { at: isAtOnce ? 'now' : 'as tokens expire' })
      const keys = await write.rotateTokenKeys({ nowMs: action.atMs, keepMs, action })
      ports.useTokenKeys(keys)
      return { validUntilMs: keys.previous[0]?.untilMs ?? null }
    },
  }
}
