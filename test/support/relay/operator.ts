import type { Actor } from '../../../src/domain/admin/operator-action.ts'

/** An operator who gives orders in tests below HTTP. */
export const OPERATOR: Actor = { kind: 'app', name: 'admin', address: '192.0.2.7' }
