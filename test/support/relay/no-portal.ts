import type { InternalOptions } from '../../../src/http/server/internal.ts'
import { systemClock } from '../../../src/runtime/system-clock.ts'

const noPortalThere = () => Promise.reject(new Error('there is no portal'))

/** For tests that do not use the portal. */
export const noPortal: InternalOptions['portal'] = {
  config: () => ({}),
  overview: { glance: noPortalThere, read: noPortalThere },
  live: { hasRoom: () => false, stream: noPortalThere },
  settings: () => ({ enabled: false, publicOrigin: null, prefix: '', isSecure: false, trustedHeader: null, admins: [] }),
  sessions: { personOf: async () => null, hold: noPortalThere, logIn: async () => {}, logOut: () => {} },
  readAsset: () => null,
  version: '0.0.0',
  clock: systemClock,
}
