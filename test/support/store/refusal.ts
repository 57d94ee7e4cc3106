import type { StoredRefused } from '../../../src/console/refused/refused-pushes.rules.ts'
import type { Refusal } from '../../../src/core/domain/ingest/refused-spells.ts'
import { NOON } from '../runner/constants.ts'

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

const SPELL = { process: 'a-process', count: 5, fromMs: NOON, untilMs: NOON + 60_000 }

export const REFUSED: readonly StoredRefused[] = [
  { ...SPELL, cause: 'not_stored', comeback: { pushes: 3, again: 1 } },
  { ...SPELL, cause: 'path' },
]
