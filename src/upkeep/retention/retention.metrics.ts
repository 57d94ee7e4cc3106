import type { Registry } from 'prom-client'
import type { Reads } from '../../core/flow/relay-part.ts'
import { instrumentsOf } from '../../core/ops/instruments.ts'
import { loadRetention } from './remove-aged.rows.ts'
import { RETENTION_STAGES } from './retention.rules.ts'

export function registerRetention(registry: Registry, { reads }: Reads<'session'>): () => Promise<void> {
  const { gauge } = instrumentsOf(registry)
  const byKind = (name: string, help: string) => gauge(name, help, ['kind'])
  const held = byKind(
    'relay_retention_held',
    'Data that the last pass held back although its time is over: it is undelivered, in quarantine or still needed.',
  )
  const removed = byKind('relay_retention_removed', 'What the last pass removed.')
  const at = gauge('relay_retention_pass_timestamp_seconds', 'When the last pass ended; absent: none has.')
  return async () => {
    const state = await loadRetention(reads.session).catch(() => null)
    if (state === null) return
    const { last } = state
    at.remove()
    if (last === null) return
    at.set(last.endedAtMs / 1000)
    for (const kind of RETENTION_STAGES) {
      held.set({ kind }, last.held[kind] ?? 0)
      removed.set({ kind }, last.removed[kind] ?? 0)
    }
  }
}
