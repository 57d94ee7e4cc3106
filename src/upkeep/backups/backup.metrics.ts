import type { Registry } from 'prom-client'
import type { Part } from '../../core/flow/relay-part.ts'
import { instrumentsOf } from '../../core/ops/instruments.ts'
import type { ManageBackups } from './manage-backups.ts'

interface BackupParts extends Part<'clock', 'now'> {
  readonly backups: Pick<ManageBackups, 'state' | 'failures' | 'skipped'>
}

/** Until a backup was made, the age and the size are absent, and an alarm can report that. */
export function registerBackups(registry: Registry, { backups, clock }: BackupParts): () => void {
  const { counter, gauge } = instrumentsOf(registry)
  const age = gauge('relay_backup_age_seconds', 'Time since the last backup was made; absent: none was.')
  const bytes = gauge('relay_backup_bytes', 'Size of the last backup; absent: none was made.')
  const failing = gauge('relay_backup_failing', '1 while the last backup has failed.')
  const failures = counter('relay_backup_failures_total', 'Backups that could not be made.')
  const skipped = counter(
    'relay_backups_skipped_total',
    'Scheduled backups that were skipped because another was being made, or the store was being moved.',
  )
  let counted = { failures: 0, skipped: 0 }
  return () => {
    const { last, failing: failure } = backups.state()
    const since = { failures: backups.failures(), skipped: backups.skipped() }
    failures.inc(since.failures - counted.failures)
    skipped.inc(since.skipped - counted.skipped)
    counted = since
    failing.set(failure === null ? 0 : 1)
    for (const one of [age, bytes]) one.remove()
    if (last === null) return
    age.set(Math.max(0, clock.now() - last.atMs) / 1000)
    bytes.set(last.bytes)
  }
}
