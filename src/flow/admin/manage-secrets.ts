import type { ActionName, Actor, OperatorAction } from '../../domain/admin/operator-action.ts'
import type { Replica } from '../../domain/admin/replica.ts'
import { parseTokenRotation, type TokenKeys } from '../../domain/admin/token-keys.ts'
import { AppError } from '../../domain/errors.ts'
import type { Clock } from '../ports.ts'
import type { AdminWrites } from './ports.ts'

/** The result of encrypting the secrets in the store again. */
export interface ResealReport {
  /** The name of the key that encrypts now: the first one of `secrets.atRestKeys`, or the key in the key file. */
  readonly key: string
  /** How many secrets were encrypted with another key before. */
  readonly resealed: number
  /** How many secrets this key had encrypted already. */
  readonly upToDate: number
  /** The names of secrets that no key opens. */
  readonly unreadable: readonly string[]
}

/** The number of secrets in the store, by the key that has encrypted them. */
export interface SealedCounts {
  /** How many are encrypted with the first at-rest key. */
  readonly upToDate: number
  /** How many are encrypted with another key. */
  readonly outdated: number
}

export interface ManageSecretsPorts {
  readonly write: Pick<AdminWrites, 'rotateTokenKeys' | 'recordAction'>
  /** Encrypts all secrets with the first key. */
  readonly reseal: () => Promise<Omit<ResealReport, 'key'>>
  /** Counts the secrets by whether the first key has encrypted them. */
  readonly countSealed: () => Promise<SealedCounts>
  /** The name of the key that encrypts now. Throws if it cannot be read or made. */
  readonly firstKey: () => string
  readonly listReplicas: () => Promise<readonly Pick<Replica, 'name' | 'atRestKeys'>[]>
  /** Makes this process use the new keys of tokens. */
  readonly useTokenKeys: (keys: TokenKeys) => void
  readonly clock: Pick<Clock, 'now'>
}

export interface ManageSecretsOptions {
  /** The longest lifetime of a token, milliseconds. */
  readonly tokenLifetimeMs: number
}

/** Lets operators replace the relay's own keys (CONTRACT, `/relay/secrets`). */
export interface ManageSecrets {
  /** Counts the secrets by whether the first key has encrypted them. */
  count(): Promise<SealedCounts>
  /** Encrypts every secret in the store with the first at-rest key. Throws `not_resealable` while another replica does not have that key. */
  reseal(by: Actor): Promise<ResealReport>
  /**
   * Replaces the key that signs tokens. Tokens that were issued before stay valid until they expire; with `{ "at": "now" }` they end now.
   * Returns when the last of them expires, epoch milliseconds; null: they have ended. Throws `bad_request`.
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

  /** Refuses while another replica does not have the key, because that replica could not open what the key encrypts. */
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
      return { validUntilMs: keys.previous?.untilMs ?? null }
    },
  }
}
