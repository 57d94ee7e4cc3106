import { randomUUID } from 'node:crypto'
import { startRepeating } from '../../core/runtime/schedule.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { createRefusedPushes, type RefusedPushesKeeper } from './refused-pushes.ts'

/** How often the counts are saved, in milliseconds. If the relay is killed, it loses the counts since then. */
const SAVE_MS = 10_000

type RefusedParts = Pick<Relay, 'write' | 'reads' | 'clock' | 'unstored' | 'closing' | 'log'>

export function openRefusedPushes({ write, reads, clock, unstored, closing, log }: RefusedParts): RefusedPushesKeeper {
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
