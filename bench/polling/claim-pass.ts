import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { openWriteSide } from '../../src/assembly/open-write-side.ts'
import { parseAllAnswer } from '../../src/core/domain/history/pull-response.ts'
import type { Incoming } from '../../src/core/domain/history/recording.ts'
import { DELIVER, recordOptions } from './relay-run.ts'
import { DEFAULTS } from './scenarios.ts'

const NOW = Date.UTC(2026, 9, 5)
const HOUR_MS = 3_600_000
const PASSES = 9
const NOTHING_NEW = Buffer.from('{"statuses":[],"trackingIds":[],"distributionType":""}')

/**
 * Claims due polls in a store on disk in which a thousandth of the watched parcels is due. Returns the median time of a pass, in milliseconds.
 * Run it alone with `node bench/polling/claim-pass.ts [parcels]`.
 */
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
      // Each pass finds the next thousandth due; the polls of the previous pass have been answered.
      const nowMs = NOW + (pass + 1) * 1000
      const startedAt = performance.now()
      const polls = await write.claimDuePolls({ nowMs, limit: due, leaseMs: HOUR_MS })
      times.push(performance.now() - startedAt)
      claimed = polls.length
      await write.record(polls.map(({ identifiers: [asked = ''] }) => answerOf(asked, nowMs)))
    }
    await write.close()
    return { medianMs: times.sort((a, b) => a - b)[Math.floor(PASSES / 2)] ?? 0, claimed }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** An answer of the carrier without news. */
function answerOf(asked: string, askedAtMs: number): Incoming {
  const reading = parseAllAnswer(NOTHING_NEW, { asked, language: 'en', contentLanguage: null, askedAtMs })
  if (!reading.ok) throw new Error(reading.reason)
  return { kind: 'poll', observation: reading.observation, watch: false }
}

/** Makes a thousandth of the parcels due every second, in random order of their ids. */
function prefill(sqlitePath: string, parcels: number): void {
  const db = new Database(sqlitePath)
  const parcel = db.prepare(
    `INSERT INTO parcel (id, watched_at_ms, activated_at_ms, entry_count, latest_status, latest_at_ms, checked_at_ms, failures, next_poll_at_ms, is_full)
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { medianMs, claimed } = await measureClaim(Number(process.argv[2] ?? 1_000_000))
  process.stdout.write(`${claimed} claimed in ${medianMs.toFixed(1)} ms\n`)
}
