import type { Refusal } from '../../../src/domain/ingest/refusal.ts'
import { NOON } from '../runner/constants.ts'

/** A refusal of a push, with its explanation. */
export const REFUSAL: Refusal = {
  atMs: NOON,
  address: '192.0.2.7',
  verdict: 'explained',
  key: 'webhook.sharedKeys[1]',
  causes: [
    { code: 'signature_hex', detail: null },
    { code: 'body_reserialised', detail: 'indented by 2 spaces' },
  ],
  isCutShort: false,
  headers: { 'user-agent': 'odd "name\' ? \u{1f4e6}' },
  body: { bytes: 512, sha256: 'ab'.repeat(32) },
}
