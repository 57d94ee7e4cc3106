import { createTokenKeyring } from '../../../src/core/flow/admin/tokens/authenticate.ts'

/** Returns a keyring with one key, which is never replaced. */
export function keyringOf(key: Uint8Array) {
  const keys = { current: key, previous: [] }
  return createTokenKeyring(keys, {
    write: { tokenKeys: async () => keys },
    clock: { now: () => 0, monotonic: () => 0 },
    pause: async () => undefined,
  })
}
