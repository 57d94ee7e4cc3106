import { createTokenKeyring } from '../../../src/flow/admin/tokens/token-keyring.ts'

/** A keyring with one key, which nobody replaces. */
export function keyringOf(key: Uint8Array) {
  const keys = { current: key, previous: null }
  return createTokenKeyring(keys, {
    write: { tokenKeys: async () => keys },
    clock: { now: () => 0, monotonic: () => 0 },
    pause: async () => undefined,
  })
}
