import { equal } from 'node:assert/strict'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { figure } from '../figures.ts'
import { type RelayServer, startRelay } from '../servers/relay.ts'
import { OPERATOR, SHOP } from '../servers/relay-config.ts'
import type { Bench, SuiteReport } from '../suite.ts'

const OBSERVATIONS = 10_000_000
const DAY_MS = 86_400_000
/** Classes of lateness that occur. */
const CLASSES = 100
/** A day keeps so many pushes of each kind as examples. */
const EXAMPLES = 20

/** Asks for the report of a month of ten million observations, of which one in a hundred counts as lost, each with its evidence. */
export async function report({ settings, relayEntry, folder, say }: Bench): Promise<SuiteReport> {
  const storePath = join(folder, 'relay.db')
  const apps = [{ ...OPERATOR.app, username: SHOP.username, scopes: ['status', 'admin'] }]
  const start = () => startRelay(relayEntry, folder, { storePath, sections: { apps } })
  // Its first start makes the store.
  await (await start()).stop()
  const now = new Date()
  const month = { from: Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1), to: Date.UTC(now.getUTCFullYear(), now.getUTCMonth()) }
  const lost = seedMonth(storePath, month)
  say(`${lost} entries of the month are lost`)
  const relay = await start()
  try {
    const token = await relay.logIn()
    const name = new Date(month.from).toISOString().slice(0, 7)
    const first = await readReport(relay, token, name, lost)
    const rounds: number[] = []
    for (let round = 0; round < settings.rounds; round++) rounds.push(await readReport(relay, token, name, lost))
    const goals = { unit: 's', better: 'lower', must: 2, aim: 0.3 } as const
    return {
      figures: [
        figure('report: a month of ten million observations, first', [first], goals),
        figure('report: the same again', rounds, goals),
      ],
      observations: [],
    }
  } finally {
    await relay.stop()
  }
}

/** Writes the days of a month and what proves them, as the relay would have stored them. Returns how many entries are lost. */
function seedMonth(storePath: string, { from, to }: { readonly from: number; readonly to: number }): number {
  const db = new Database(storePath, { fileMustExist: true })
  const days = (to - from) / DAY_MS
  const pushed = Math.round(OBSERVATIONS / days)
  const lost = Math.round(pushed / 100)
  const bars = Object.fromEntries(Array.from({ length: CLASSES }, (_, at) => [`b${at}`, Math.round(pushed / CLASSES)]))
  const counts = { pushed, lost, late: lost, repeated: lost, reworded: lost, outOfOrder: lost, quarantined: lost, disagreed: lost, ...bars }
  const tally = db.prepare("INSERT INTO tally (span, kind, from_ms, counts) VALUES ('report', 'report', ?, ?)")
  const evidence = db.prepare('INSERT INTO report_evidence (name, id, day, parcel_id) VALUES (?, ?, ?, ?)')
  const parcel = db.prepare(
    'INSERT INTO parcel (id, activated_at_ms, entry_count, failures, is_full, last_seen_at_ms) VALUES (?, 0, 1, 0, 0, ?)',
  )
  const identifier = db.prepare('INSERT INTO identifier (value, parcel_id, is_tracking_id) VALUES (?, ?, 1)')
  const fill = db.transaction(() => {
    db.prepare("INSERT OR REPLACE INTO setting (name, value) VALUES ('report-from', ?)").run(Buffer.from(String(from)))
    for (let day = from, id = 1; day < to; day += DAY_MS) {
      tally.run(day, JSON.stringify(counts))
      for (const name of ['late', 'repeated', 'reworded', 'outOfOrder', 'quarantined'])
        for (let nth = 0; nth < EXAMPLES; nth++) evidence.run(name, id + nth, day, 0)
      for (let nth = 0; nth < lost; nth++, id++) {
        parcel.run(id, day)
        identifier.run(`9700${String(id).padStart(8, '0')}`, id)
        evidence.run('lost', id, day, id)
        evidence.run('disagreed', id, day, id)
      }
    }
  })
  fill()
  db.close()
  return lost * days
}

/** Returns how many seconds the answer takes. */
async function readReport(relay: RelayServer, token: string, month: string, lost: number): Promise<number> {
  const startMs = performance.now()
  const response = await relay.ask(`/relay/report?month=${month}`, token)
  const text = await response.text()
  const seconds = (performance.now() - startMs) / 1000
  const { counts, evidence }: { counts: { lost: number }; evidence: readonly { name: string; ids: readonly string[]; more: number }[] } =
    JSON.parse(text)
  equal(counts.lost, lost, 'the report counts what is lost')
  const proofs = evidence.find(({ name }) => name === 'lost')
  equal((proofs?.ids.length ?? 0) + (proofs?.more ?? 0), lost, 'each lost entry is proved')
  return seconds
}
