import { dayIn } from '../../core/domain/calendar.ts'
import { addReportTallies } from '../../core/store/admin/tally-rows.ts'
import { makeSetting, saveSetting } from '../../core/store/settings.ts'
import type { Transactions, WriteTx } from '../../core/store/write-store.ts'
import { addOutage, addProofs, COUNTED_FROM, countProofs, readCountedFrom, takeLost, takeNotes } from './report.rows.ts'
import { createDayCounts, foldNotes, type NotedFacts, type Proof } from './report.rules.ts'

/** Of a count that pushes prove, so many are kept of each day. */
const EXAMPLES_A_DAY = 20

interface Request {
  readonly nowMs: number
  readonly zone: string
}

/** Creates the verb that adds to the report what transactions have noted. */
export function createFoldReport(store: Transactions) {
  return {
    /**
     * Adds to the days of the carrier's report some of what transactions have noted. `zone`: of the days. Returns whether some is left. Replicas may
     * do this at once: a note that one has taken, no other finds.
     */
    foldReport: (request: Request) => store.transaction((tx) => foldSome(tx, request), { ofRole: 'any' }),
  }
}

async function foldSome(tx: WriteTx, { nowMs, zone }: Request): Promise<boolean> {
  const { notes, isLast } = await takeNotes(tx)
  const counted = dayIn(zone, Math.min(nowMs, ...notes.map(({ atMs }) => atMs)))
  // A day ahead is of a clock, or a zone, that was put back.
  const known = readCountedFrom(await tx.loadSetting(COUNTED_FROM))
  if (known === null) await makeSetting(tx, COUNTED_FROM, Buffer.from(String(counted)))
  else if (known > counted) await saveSetting(tx, COUNTED_FROM, Buffer.from(String(counted)))
  const counts = createDayCounts(zone)
  const facts = foldNotes(notes, zone, counts)
  for (const proof of await addProofs(tx, facts.unique)) counts.add(proof, { [proof.name]: 1 })
  const examples = [...facts.examples, ...(await foldPolled(tx, facts, counts))]
  await addExamples(tx, examples)
  await Promise.all(facts.outages.map((outage) => addOutage(tx, outage)))
  addReportTallies(tx, counts.additions())
  return !isLast
}

/** Moves what was lost, and came after all, to what is late (DOMAIN 10.2). Returns the pushes that prove this. */
async function foldPolled(tx: WriteTx, { polled }: NotedFacts, counts: ReturnType<typeof createDayCounts>): Promise<readonly Proof[]> {
  const found = await takeLost(
    tx,
    polled.flatMap(({ polledAs }) => polledAs),
  )
  return polled.filter((push) => {
    const days = push.polledAs.flatMap((sequence) => found.get(sequence) ?? [])
    for (const day of days) counts.add({ ...push, day }, { lost: -1 })
    const isMoved = days.length > 0 && !push.isLate
    if (isMoved) counts.add(push, { late: 1 })
    return isMoved
  })
}

/** Keeps the first examples of each day. */
async function addExamples(tx: WriteTx, examples: readonly Proof[]): Promise<void> {
  const groups = Map.groupBy(examples, ({ name, day }) => `${name} ${day}`).values()
  await Promise.all(
    [...groups].map(async (ofDay) => {
      const [first] = ofDay
      if (first === undefined) return
      const room = EXAMPLES_A_DAY - (await countProofs(tx, { name: first.name, from: first.day, to: first.day + 1 }))
      if (room > 0) await addProofs(tx, ofDay.slice(0, room))
    }),
  )
}
