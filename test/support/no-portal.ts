import type { InternalOptions } from '../../src/http/server/internal.ts'
import { systemClock } from '../../src/runtime/system-clock.ts'

/** For tests of what lies beside it. */
export const noPortal: InternalOptions['portal'] = {
  config: () => ({}),
  overview: { read: () => Promise.reject(new Error('there is no portal')) },
  settings: () => ({ enabled: false, publicOrigin: null, prefix: '', isSecure: false, trustedHeader: null, admins: [] }),
  sessions: { personOf: async () => null, logIn: async () => {}, logOut: () => {} },
  readAsset: () => null,
  version: '0.0.0',
  clock: systemClock,
}
