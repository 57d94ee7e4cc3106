import { randomUUID } from 'node:crypto'
import type { Unstored } from '../flow/admin/unstored.ts'
import { createRefusedPushes, type RefusedPushesKeeper } from '../flow/ingest/refused-pushes.ts'
import type { Log } from '../flow/ports.ts'
import { startRepeating } from '../runtime/repeating.ts'
import type { Closing } from './closing.ts'
import type { Storage } from './storage/opened-storage.ts'

/** How often the counts are saved, in milliseconds. If the relay is killed, it loses the counts since then. */
const SAVE_MS = 10_000

export function openRefusedPushes(
  { write, reads, clock }: Pick<Storage, 'write' | 'reads' | 'clock'>,
  unstored: Pick<Unstored, 'add'>,
  closing: Closing,
  log: Log,
): RefusedPushesKeeper {
  const refused = createRefusedPushes({ write, reads, clock, process: randomUUID() })
  unstored.add(() => {
    const save = refused.unsaved()
    return save === null ? [] : [{ kind: 'refused', save }]
  })
  const save = () =>
    refused.save().catch((err: unknown) => log.debug({ err }, 'cannot save the counts of refused pushes now; the relay tries again'))
  const saving = startRepeating(save, SAVE_MS)
  closing.add(() => saving.stop())
  closing.add(save)
  return refused
}
