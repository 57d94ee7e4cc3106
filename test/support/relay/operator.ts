import type { Actor } from '../../../src/core/domain/admin/operator-action.ts'

/** The operator in tests that give orders without HTTP. */
export const OPERATOR: Actor = { kind: 'app', name: 'admin', address: '192.0.2.7' }
