import type { ActionName, Actor, OperatorAction } from '../../domain/admin/operator-action.ts'
import type { Replica } from '../../domain/admin/replica.ts'
import { parseTokenRotation, type TokenKeys } from '../../domain/admin/token-keys.ts'
import { AppError } from '../../domain/errors.ts'
import type { Clock } from '../ports.ts'
import type { AdminWrites } from './ports.ts'

/** What became of the secrets that are encrypted in the store. */
export interface ResealReport {
  /** Names the key that encrypts now: the first one of `secrets.atRestKeys`, or the key file's. */
  readonly key: string
  /** Were encrypted with another key, and are encrypted with this one now. */
  readonly resealed: number
  /** Were encrypted with this key before. */
  readonly upToDate: number
  /** Names of secrets that no key opens. */
  readonly unreadable: readonly string[]
}

/** The secrets in the store, by the key that has encrypted them. */
export interface SealedCounts {
  /** Encrypted with the first at-rest key. */
  readonly upToDate: number
  /** Encrypted with another key. */
  readonly outdated: number
}

export interface ManageSecretsPorts {
  readonly write: Pick<AdminWrites, 'rotateTokenKeys' | 'recordAction'>
  /** Encrypts everything with the first key. */
  readonly reseal: () => Promise<Omit<ResealReport, 'key'>>
  /** How many secrets the first key has encrypted, and how many another. */
  readonly countSealed: () => Promise<SealedCounts>
  /** The name of the key that encrypts now. Throws if it cannot be read or made. */
  readonly firstKey: () => string
  readonly listReplicas: () => Promise<readonly Pick<Replica, 'name' | 'atRestKeys'>[]>
  /** Tells this process that the keys of tokens were replaced. */
  readonly useTokenKeys: (keys: TokenKeys) => void
  readonly clock: Pick<Clock, 'now'>
}

export interface ManageSecretsOptions {
  /** How long the longest-lived token is valid, milliseconds. */
  readonly tokenLifetimeMs: number
}

/** The relay's own keys (CONTRACT, `/relay/secrets`). */
export interface ManageSecrets {
  /** How many secrets each key has encrypted. */
  count(): Promise<SealedCounts>
  /** Encrypts every secret in the store with the first at-rest key. Throws `not_resealable` while another replica does not have that key. */
  reseal(by: Actor): Promise<ResealReport>
  /**
   * Replaces the key that signs tokens. Tokens that were issued before stay valid until they expire; with `{ "at": "now" }` they end now. Throws
   * `bad_request`. Returns when the last of them ends, epoch milliseconds; null: they have ended.
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

  /** What is sealed with a key that a replica does not have, that replica could not use. */
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
