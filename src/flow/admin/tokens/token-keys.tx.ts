import { rotateTokenKeys, type TokenKeys } from '../../../domain/admin/token-keys.ts'
import { type AuditTx, audit } from '../../audit.tx.ts'
import type { Transactions, WriteTx } from '../../write-store.ts'
import type { AdminWrites } from '../ports.ts'

const CURRENT = 'token-key'
const PREVIOUS = 'token-key-previous'
const TIME_BYTES = 8

type SettingsTx = Pick<WriteTx, 'loadSetting' | 'makeSetting' | 'saveSetting'>

/** Creates the verbs that keep the keys of tokens in the store. `makeKey` returns 32 random bytes. */
export function createTokenKeys(
  store: Transactions<SettingsTx & AuditTx>,
  makeKey: () => Uint8Array,
): Pick<AdminWrites, 'tokenKeys' | 'rotateTokenKeys'> {
  const load = async (tx: SettingsTx): Promise<TokenKeys> => ({
    current: (await tx.loadSetting(CURRENT)) ?? (await tx.makeSetting(CURRENT, makeKey())),
    previous: decodePrevious(await tx.loadSetting(PREVIOUS)),
  })
  return {
    tokenKeys: () => store.transaction(load),
    rotateTokenKeys: ({ action, ...rotation }) =>
      store.transaction(async (tx) => {
        const keys = rotateTokenKeys(await load(tx), makeKey(), rotation)
        await tx.saveSetting(CURRENT, keys.current)
        await tx.saveSetting(PREVIOUS, encodePrevious(keys.previous))
        audit(tx, action === undefined ? {} : { action })
        return keys
      }),
  }
}

/** Returns 8 bytes with the time, followed by the key. Returns no bytes if there is no previous key. */
function encodePrevious(previous: TokenKeys['previous']): Uint8Array {
  if (previous === null) return new Uint8Array()
  const bytes = Buffer.alloc(TIME_BYTES + previous.key.byteLength)
  bytes.writeDoubleBE(previous.untilMs)
  bytes.set(previous.key, TIME_BYTES)
  return bytes
}

function decodePrevious(stored: Uint8Array | null): TokenKeys['previous'] {
  if (stored === null || stored.byteLength <= TIME_BYTES) return null
  const bytes = Buffer.from(stored)
  return { untilMs: bytes.readDoubleBE(), key: bytes.subarray(TIME_BYTES) }
}
