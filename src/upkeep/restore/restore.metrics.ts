import type { Registry } from 'prom-client'
import { instrumentsOf } from '../../core/ops/instruments.ts'
import type { Relay } from '../../core/wiring/relay.ts'

/** Registers metrics that are set once, because a store is restored only while no relay runs. */
export function registerRestores(registry: Registry, { restores }: Pick<Relay, 'restores'>): () => void {
  const { gauge } = instrumentsOf(registry)
  gauge('relay_restores', 'How often the store was restored from a backup.').set(restores.length)
  const repeatable = gauge(
    'relay_restore_deliveries_repeatable',
    'Deliveries that were accepted after the backups that the store was restored from: their events may come again under new ids. NaN: unknown.',
  )
  repeatable.set(restores.reduce((sum, { delivered }) => sum + (delivered ?? Number.NaN), 0))
  return () => undefined
}
