import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { openWriteSide } from '../../src/write-side.ts'
import { DELIVER, recordOptions } from './relay-run.ts'
import { DEFAULTS } from './scenarios.ts'

const NOW = Date.UTC(2026, 9, 5)
const HOUR_MS = 3_600_000
const PASSES = 9

/** Watched parcels of which a thousandth is due, in a file on disk: the median of passes that claim all that are due, in milliseconds. */
export async function measureClaim(parcels: number): Promise<{ readonly medianMs: number; readonly claimed: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'polling-claim-'))
  try {
    const sqlitePath = join(folder, 'relay.db')
    const open = async () =>
      await openWriteSide(
        { sqlitePath, record: recordOptions(DEFAULTS), deliver: DELIVER },
        { now: () => NOW, monotonic: () => NOW },
        console,
      )
    await (await open()).close()
    prefill(sqlitePath, parcels)
    const write = await open()
    const due = Math.floor(parcels / 1000)
    const times: number[] = []
    let claimed = 0
    for (let pass = 0; pass < PASSES; pass++) {
      // Each pass finds the next thousandth due; what the one before claimed is leased.
      const nowMs = NOW + (pass + 1) * 1000
      const startedAt = performance.now()
      claimed = (await write.claimDuePolls({ nowMs, limit: due, leaseMs: 30 * 24 * HOUR_MS })).length
      times.push(performance.now() - startedAt)
    }
    await write.close()
    return { medianMs: times.sort((a, b) => a - b)[Math.floor(PASSES / 2)] ?? 0, claimed }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** A thousandth falls due every second, in no order of their numbers. */
function prefill(sqlitePath: string, parcels: number): void {
  const db = new Database(sqlitePath)
  const parcel = db.prepare(
    `INSERT INTO parcel (id, watched_at_ms, revived_at_ms, entry_count, latest_status, latest_at_ms, checked_at_ms, failures, next_poll_at_ms, is_full)
     VALUES (?, ${NOW}, ${NOW}, 3, 'TerminalArrived', ${NOW}, ${NOW}, 0, ?, 0)`,
  )
  const identifier = db.prepare('INSERT INTO identifier (value, parcel_id, is_tracking_id) VALUES (?, ?, 0)')
  db.transaction(() => {
    for (let id = 1; id <= parcels; id++) {
      parcel.run(id, NOW + 1 + ((id * 7919) % 1000) * 1000)
      identifier.run(`LC${String(id).padStart(9, '0')}SE`, id)
    }
  })()
  db.close()
}
