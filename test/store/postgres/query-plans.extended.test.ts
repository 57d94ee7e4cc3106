import { sql } from 'kysely'
import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createPostgresReader, createPostgresWriter, PLAN_SETTINGS } from '../../../src/store/postgres/postgres.ts'
import { rawStatement } from '../../../src/store/postgres/raw-statement.ts'
import { LONG } from '../../support/runner/long-form.ts'
import { isWholeCount, usedOnPostgres } from '../../support/store/hot-statements.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { openTestPool } from '../../support/store/postgres-pool.ts'

const LARGE = [
  'parcel',
  'identifier',
  'content',
  'sighting',
  'answer',
  'inbox',
  'feed',
  'composed_event',
  'delivery',
  'attempt',
  'operator_event',
  'operator_action',
]

interface Step {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string | undefined
  readonly 'Index Cond'?: string | undefined
  readonly Plans?: readonly Step[] | undefined
}

const step: z.ZodType<Step> = z.lazy(() =>
  z.object({
    'Node Type': z.string(),
    'Relation Name': z.string().optional(),
    'Index Cond': z.string().optional(),
    Plans: z.array(step).optional(),
  }),
)
const explained = z.tuple([z.object({ 'QUERY PLAN': z.tuple([z.object({ Plan: step })]) })])

/** Returns the generic plan, which the server uses for all values of the parameters. */
async function planOf(client: pg.ClientBase, statement: string): Promise<Step> {
  const { rows } = await client.query(`explain (generic_plan, format json) ${statement}`)
  return explained.parse(rows)[0]['QUERY PLAN'][0].Plan
}

function stepsOf(plan: Step): readonly Step[] {
  return [plan, ...(plan.Plans ?? []).flatMap(stepsOf)]
}

const isLarge = (of: Step) => LARGE.includes(of['Relation Name'] ?? '')
const isUnbounded = (of: Step) => of['Index Cond'] === undefined
/** Returns a bitmap scan and the index scans below it. The index scans do not name the table. */
const indexesOf = (of: Step) => stepsOf({ ...of, Plans: of.Plans?.filter((below) => below['Node Type'].startsWith('Bitmap')) })
/** Whether a step reads a large table, or an index of it, from end to end. */
const isScan = (of: Step) =>
  isLarge(of) &&
  (of['Node Type'] === 'Seq Scan' ||
    (of['Node Type'].startsWith('Index') && isUnbounded(of)) ||
    (of['Node Type'] === 'Bitmap Heap Scan' &&
      indexesOf(of).some((below) => below['Node Type'] === 'Bitmap Index Scan' && isUnbounded(below))))
/** Whether a step sorts all rows that match, only to return the first ones. */
const isSortOfAll = (of: Step) =>
  of['Node Type'] === 'Limit' && stepsOf(of).some((below) => /Sort/.test(below['Node Type'])) && stepsOf(of).some(isLarge)

async function plansWith(isFound: (of: Step) => boolean, client: pg.ClientBase, statements: readonly string[]): Promise<readonly string[]> {
  const plans: string[] = []
  for (const statement of statements) {
    const plan = await planOf(client, statement)
    if (stepsOf(plan).some(isFound)) plans.push(`${statement.trim()}\n${JSON.stringify(plan)}`)
  }
  return plans
}

const FROM = 1_000_000
// The planner prefers a scan only below a few hundred rows, so 10,000 parcels suffice. Writing 200,000 takes a minute.
const PARCELS = LONG ? 200_000 : 10_000
const EVENTS_EACH = 7
const parcels = `generate_series(${FROM}, ${FROM + PARCELS - 1}) as g (n)`
const events = `generate_series(${FROM}, ${FROM + PARCELS * EVENTS_EACH - 1}) as g (n)`
const parcelOf = `${FROM} + (n - ${FROM}) / ${EVENTS_EACH}`
const isBackfill = 'n % 10 = 0'
const isLast = `n % ${EVENTS_EACH} = 0`

/** Fills a store as if the relay had run for a while. */
const FILL = [
  `insert into parcel (id, activated_at_ms, entry_count, failures, is_full, next_poll_at_ms, last_seen_at_ms)
     select n, n, 7, 0, 0, case when n % 4 = 0 then null else n end, n from ${parcels}`,
  `insert into identifier (value, parcel_id, is_tracking_id) select 'T' || n, n, 1 from ${parcels}`,
  `insert into content (digest, json) select decode(md5(n::text), 'hex'), '{}' from ${parcels}`,
  `insert into answer (parcel_id, asked_at_ms, entry_count, is_flawed, decides_order, language, digest, head)
     select n, 0, 0, 0, 1, 'en', '', '' from ${parcels}`,
  `insert into sighting (parcel_id, at_ms, content_id, listing, asked_at_ms, sequence, ordinal, time_form, audience)
     select ${parcelOf}, n, n % ${PARCELS}, 0, 0, n, 0, 0, case when ${isBackfill} then -n else 1 end from ${events}`,
  `insert into inbox (id, parcel_id, received_at_ms, key_index, state, reason, digest, body)
     select n, ${parcelOf}, n, 0, case when n % 100 < 3 then 1 + n % 100 else 0 end, case when n % 100 in (0, 2) then 'schema' end, int8send(n), int8send(n)
     from ${events}`,
  `insert into feed (sequence, parcel_id, entry, kind, payload_ref)
     select n, ${parcelOf}, n, 0, case when ${isBackfill} then -1 else n end from ${events}`,
  `insert into composed_event (sequence, body) select n, int8send(n) from ${parcels}`,
  `insert into delivery (endpoint_id, parcel_id, sequence, previous_sequence, inbox_id, queued_at_ms, next_attempt_at_ms, attempts, state)
     select 2, ${parcelOf}, n, 0, n, n, n, 0, case when n % 70 < 7 then case when ${isLast} then 1 else 0 end else 2 end from ${events}`,
  `insert into attempt (delivery_id, at_ms, duration_ms) select n, n, 0 from ${parcels}`,
  `insert into operator_event (at_ms, event, detail) select n, 'reloaded', '{}' from ${parcels}`,
  `insert into operator_action (at_ms, by_kind, by_name, action, detail) select n, 'app', 'admin', 'endpoint.tested', '{}' from ${parcels}`,
  'analyze',
]

async function planWith(client: pg.ClientBase, settings: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, value] of Object.entries(settings)) await client.query(`set ${name} = ${value}`)
}

async function openUsed() {
  const { url } = await createDatabase()
  const used = (await usedOnPostgres(url)).filter((statement) => !isWholeCount(statement))
  const client = await openTestPool(url).connect()
  onTestFinished(() => client.release())
  return { client, used }
}

test(`with ${PARCELS} parcels no statement reads a whole table or sorts before its limit`, async () => {
  const { client, used } = await openUsed()
  expect(used.length).toBeGreaterThan(80)
  for (const part of FILL) await client.query(part)
  for (const settings of [{}, PLAN_SETTINGS]) {
    await planWith(client, settings)
    expect(await plansWith(isScan, client, used)).toEqual([])
    expect(await plansWith(isSortOfAll, client, used)).toEqual([])
  }
}, 240_000)

test('a plan made while tables were small reads no whole table after they have grown', async () => {
  const { client, used } = await openUsed()
  await planWith(client, PLAN_SETTINGS)
  for (const first of ['vacuum', 'analyze']) {
    await client.query(first)
    expect(await plansWith(isScan, client, used)).toEqual([])
    expect(await plansWith(isSortOfAll, client, used)).toEqual([])
  }
})

test('each filter of the audit trail is planned by the index that begins with its columns', async () => {
  const { client, used } = await openUsed()
  const lists = used.flatMap((statement) => {
    const [, columns] = /"operator_action" where \(\(([^)]*)\) < /.exec(statement) ?? []
    return columns === undefined ? [] : [{ statement, columns: columns.replaceAll('"', '') }]
  })
  expect(lists).toHaveLength(5)
  for (const part of FILL.filter((one) => one === 'analyze' || one.includes('operator_action'))) await client.query(part)
  for (const settings of [{}, PLAN_SETTINGS]) {
    await planWith(client, settings)
    for (const { statement, columns } of lists) {
      const conditions = stepsOf(await planOf(client, statement)).flatMap((one) => one['Index Cond'] ?? [])
      expect(conditions).toEqual([expect.stringContaining(`ROW(${columns}) < `)])
    }
  }
})

test('every transaction is planned without scans of whole tables and without JIT', async () => {
  const pool = openTestPool((await createDatabase()).url)
  const shown = rawStatement()(() => sql<object>`select current_setting('enable_seqscan') as scans, current_setting('jit') as compiles`)
  const writer = createPostgresWriter(pool, { named: true })
  const reader = createPostgresReader(pool, { named: true })
  expect(await writer.transaction((session) => session.all(shown, {}))).toEqual([{ scans: 'off', compiles: 'off' }])
  expect(await reader.snapshot((session) => session.all(shown, {}))).toEqual([{ scans: 'off', compiles: 'off' }])
  expect(await reader.session.all(shown, {})).toEqual([{ scans: 'on', compiles: 'on' }])
})
