import type { Audited } from '../../../domain/admin/operator-action.ts'
import { type EndedSession, rotateTokenKeys, type TokenKeyRotation, type TokenKeys } from '../../../domain/admin/token-keys.ts'
import { endSession, makeSetting, saveSetting } from '../../../store/settings.ts'
import type { Transactions, WriteTx } from '../../../store/write-store.ts'
import { audit } from '../../audit.tx.ts'

const CURRENT = 'token-key'
const PREVIOUS = 'token-key-previous'
const TIME_BYTES = 8
const ENTRY_BYTES = TIME_BYTES + 32

/** Creates the verbs that keep the keys of tokens in the store, and end sessions. `makeKey` returns 32 random bytes. */
export function createTokenKeys(store: Transactions, makeKey: () => Uint8Array) {
  const load = async (tx: WriteTx): Promise<TokenKeys> => ({
    current: (await tx.loadSetting(CURRENT)) ?? (await makeSetting(tx, CURRENT, makeKey())),
    previous: decodePrevious(await tx.loadSetting(PREVIOUS)),
  })
  return {
    /** The keys that sign the relay's tokens. Makes the first key if there is none yet. */
    tokenKeys: () => store.transaction(load),
    rotateTokenKeys: ({ action, ...rotation }: TokenKeyRotation & Audited) =>
      store.transaction(async (tx) => {
        const keys = rotateTokenKeys(await load(tx), makeKey(), rotation)
        await saveSetting(tx, CURRENT, keys.current)
        await saveSetting(tx, PREVIOUS, encodePrevious(keys.previous))
        audit(tx, action === undefined ? {} : { action })
        return keys
      }),
    /** Logs a session of the portal out, for all replicas. */
    endSession: (ended: EndedSession) => store.transaction((tx) => endSession(tx, ended)),
  }
}

/** Returns 8 bytes with the time, followed by the key, for each previous key. */
function encodePrevious(previous: TokenKeys['previous']): Uint8Array {
  return Buffer.concat(
    previous.flatMap(({ untilMs, key }) => {
      const time = Buffer.alloc(TIME_BYTES)
      time.writeDoubleBE(untilMs)
      return [time, key]
    }),
  )
}

function decodePrevious(stored: Uint8Array | null): TokenKeys['previous'] {
  const bytes = Buffer.from(stored ?? [])
  return Array.from({ length: Math.floor(bytes.byteLength / ENTRY_BYTES) }, (_, nth) => {
    const from = nth * ENTRY_BYTES
    return { untilMs: bytes.readDoubleBE(from), key: bytes.subarray(from + TIME_BYTES, from + ENTRY_BYTES) }
  })
}
