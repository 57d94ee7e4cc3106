import { parseRestores, type RestoreRecord } from '../../core/domain/admin/restore.ts'
import { recordOperatorEvent } from '../../core/flow/audit.tx.ts'
import { saveSetting } from '../../core/store/settings.ts'
import type { WriteStore, WriteTx } from '../../core/store/write-store.ts'

/** The stored setting in which the command `restore` records each restore. */
const SETTING = 'restores'

/** Creates the function that notifies operators of restores. The relay does this when it starts, because restores happen while the relay is down. */
export function createTellRestores(store: WriteStore) {
  return {
    /** Notifies operators of new restores. Resolves with their number. */
    tellRestores: ({ nowMs }: { readonly nowMs: number }) =>
      store.transaction(async (tx) => {
        const restores = await loadRestores(tx)
        const untold = restores.filter(({ isTold }) => !isTold)
        if (untold.length === 0) return 0
        await Promise.all(untold.map((restore) => tell(tx, restore, nowMs)))
        const told = restores.map((restore) => ({ ...restore, isTold: true }))
        await saveSetting(tx, SETTING, new TextEncoder().encode(JSON.stringify(told)))
        return untold.length
      }),
  }
}

async function tell(tx: WriteTx, { backup, madeAtMs, from, to, delivered }: RestoreRecord, nowMs: number): Promise<void> {
  const madeAt = madeAtMs === null ? null : new Date(madeAtMs).toISOString()
  await recordOperatorEvent(tx, { event: 'store_restored', backup, madeAt, lastSequence: from, nextSequence: to, delivered }, nowMs)
}

async function loadRestores(tx: WriteTx): Promise<readonly RestoreRecord[]> {
  const kept = await tx.loadSetting(SETTING)
  return kept === null ? [] : parseRestores(new TextDecoder().decode(kept))
}

/** Returns when the store was last restored, epoch milliseconds; null: never. */
export function lastRestoreAtMs(store: WriteStore): Promise<number | null> {
  return store.transaction(lastRestoreIn)
}

export async function lastRestoreIn(tx: WriteTx): Promise<number | null> {
  return (await loadRestores(tx)).at(-1)?.atMs ?? null
}
