import { sql } from 'kysely'
import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createPostgresReader, createPostgresWriter, PLAN_SETTINGS } from '../../../src/server/postgres/postgres.ts'
import { rawStatement } from '../../../src/server/postgres/postgres-dialect.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { LONG } from '../../support/runner/long-form.ts'
import { allStatements, mayReadAll } from '../../support/store/all-statements.ts'
import { BOUNDED } from '../../support/store/bounded-tables.ts'
import { sentAloneOnPostgres } from '../../support/store/hot-statements.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { openTestPool } from '../../support/store/postgres-pool.ts'

interface Step {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string | undefined
  readonly 'Index Name'?: string | undefined
  readonly 'Index Cond'?: string | undefined
  readonly Filter?: string | undefined
  readonly Plans?: readonly Step[] | undefined
}

const step: z.ZodType<Step> = z.lazy(() =>
  z.object({
    'Node Type': z.string(),
    'Relation Name': z.string().optional(),
    'Index Name': z.string().optional(),
    'Index Cond': z.string().optional(),
    Filter: z.string().optional(),
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

/** The steps of a plan without those that end at a limit: an index that is read in its order, and nothing left out. */
function endlessStepsOf(plan: Step): readonly Step[] {
  const below = (plan.Plans ?? []).filter(
    (step) => plan['Node Type'] !== 'Limit' || !step['Node Type'].startsWith('Index') || step.Filter !== undefined,
  )
  return [plan, ...below.flatMap(endlessStepsOf)]
}

/** Indexes that hold a few rows of a table that grows: the jobs that have not ended, and those whose end was not told yet. */
const SHORT = ['job_unended', 'job_end_untold']

/** The first column of each index by its name. A condition about the others alone reads the index from end to end. */
async function firstColumns(client: pg.ClientBase): Promise<ReadonlyMap<string, string>> {
  const { rows } = await client.query<{ name: string; first: string }>(
    'select relname as name, pg_get_indexdef(indexrelid, 1, true) as first from pg_index join pg_class on oid = indexrelid',
  )
  return new Map(rows.map(({ name, first }) => [name, /^\w+/.exec(first)?.[0] ?? first]))
}

const isLarge = ({ 'Relation Name': table }: Step) => table !== undefined && !(table in BOUNDED)
/** Returns a bitmap scan and the index scans below it. The index scans do not name the table. */
const indexesOf = (of: Step) => stepsOf({ ...of, Plans: of.Plans?.filter((below) => below['Node Type'].startsWith('Bitmap')) })

/** Whether a step reads a large table, or an index of it, from end to end. */
function isScan(of: Step, firsts: ReadonlyMap<string, string>): boolean {
  const isWhole = ({ 'Index Name': index = '', 'Index Cond': condition = '' }: Step) =>
    !SHORT.includes(index) && !condition.includes(`(${firsts.get(index)} `) && !condition.includes(`(${firsts.get(index)},`)
  if (!isLarge(of)) return false
  if (of['Node Type'] === 'Bitmap Heap Scan')
    return indexesOf(of).some((below) => below['Node Type'] === 'Bitmap Index Scan' && isWhole(below))
  return of['Node Type'] === 'Seq Scan' || (of['Node Type'].startsWith('Index') && isWhole(of))
}

/** Whether a step sorts all rows that match, only to return the first ones. */
const isSortOfAll = (of: Step) =>
  of['Node Type'] === 'Limit' && stepsOf(of).some((below) => /Sort/.test(below['Node Type'])) && stepsOf(of).some(isLarge)

/** Statements that sort before their limit, and why they may. */
const SORTED: readonly (readonly [statement: RegExp, because: string])[] = [
  [/^select "delivery"\.\*.* and "delivery"\."parcel_id" = /, 'the deliveries of one parcel'],
  [/ offset 19999$/, 'a count in steps of 20,000 rows'],
  [/^select \* from "operator_action" where \(\("by_name", "action", /, 'what one person did'],
  [/ limit 512\) as "looked" /, 'at most 512 parcels'],
  [/"first"\."parcel_id" = "ended"\."parcel_id"/, 'what one endpoint waits for of one parcel'],
]
const maySort = (statement: string) => SORTED.some(([pattern]) => pattern.test(statement))

/** Returns the statements, with their plans, that read from end to end what grows, or sort it. */
async function scansOf(client: pg.ClientBase, statements: readonly string[]): Promise<readonly string[]> {
  const firsts = await firstColumns(client)
  const found: string[] = []
  for (const statement of statements) {
    const plan = await planOf(client, statement)
    const sorts = !maySort(statement) && stepsOf(plan).some(isSortOfAll)
    if (sorts || endlessStepsOf(plan).some((step) => isScan(step, firsts))) found.push(`${statement.trim()}\n${JSON.stringify(plan)}`)
  }
  return found
}

const FROM = 1_000_000
// The planner prefers a scan only below a few hundred rows, so 10,000 parcels suffice. Writing 200,000 takes a minute.
const PARCELS = LONG ? 200_000 : 10_000
const EVENTS_EACH = 7
const parcelOf = `n / ${EVENTS_EACH}`
const isBackfill = 'n % 10 = 0'
const isLast = `n % ${EVENTS_EACH} = 0`

/** Fills a store as if the relay had run for a while. */
function fillOf(count: number): readonly string[] {
  const parcels = `generate_series(${FROM}, ${FROM + count - 1}) as g (n)`
  const events = `generate_series(${FROM * EVENTS_EACH}, ${(FROM + count) * EVENTS_EACH - 1}) as g (n)`
  return [
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
    `insert into endpoint (name, origin, settings) select 'E' || n, 'api', '{}' from generate_series(${FROM}, ${FROM + 9}) as g (n)`,
    `insert into language_asked (parcel_id, sequence, language) select n, n, 'sv' from ${parcels}`,
    `insert into expected_push (entry, parcel_id, event_at_ms, found_at_ms, due_at_ms) select n, n, n, n, n from ${parcels}`,
    `insert into audit (sequence, at_ms, parcel_id, kind, detail) select n, n, n, 'join', '{}' from ${parcels}`,
    `insert into tombstone (parcel_id, erased_at_ms, mark) select n, n, md5(n::text) from ${parcels}`,
    `insert into erasure (identifier) select 'E' || n from ${parcels}`,
    `insert into job (done, created_at_ms, ended_at_ms, end_told, kind, task, started_by, state) select 0, n, n, 1, 'watch', '{}', 'admin', 'done' from ${parcels}`,
    `insert into quarantine_count (at_ms, reason, count) select n, 'schema', 1 from ${parcels}`,
    `insert into order_context (parcel_id, sequence, reference, labels) select n, n, 'O' || n, '{}' from ${parcels}`,
    `insert into overwritten (parcel_id, nth, sequence, learnt_at_ms, value) select n, 1, n, n, '{}' from ${parcels}`,
    `insert into report_evidence (name, id, day, parcel_id) select 'lost', n, n, n from ${parcels}`,
    `insert into watchdog_due (parcel_id, due_at_ms, is_open, ask_at_ms) select n, n, n % 2, case when n % 4 = 0 then n end from ${parcels}`,
    `insert into watchdog_breach (parcel_id, rule, since_ms, is_checked, told_at_ms, ended_at_ms)
     select n, 'R' || n % 20, n, 1, n, case when n % 2 = 0 then n end from ${parcels}`,
    `insert into tally (span, kind, from_ms, counts) select 'hour', 'pushes', n, '{}' from ${parcels}`,
  ]
}

async function planWith(client: pg.ClientBase, settings: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, value] of Object.entries(settings)) await client.query(`set ${name} = ${value}`)
}

/** Statements that the relay does not send to PostgreSQL, or that only a job sends: a pass of retention, and the search of an erasure. */
const isOfJob = (statement: string) =>
  /"sqlite_sequence"|^delete from "operator_(?:event|action)"|^update "operator_(?:event|action)" set "(?:detail|target)"/.test(statement)

async function openStore() {
  const { url } = await createDatabase()
  const client = await openTestPool(url).connect()
  onTestFinished(() => client.release())
  const statements = (await allStatements(postgres)).filter((one) => !isOfJob(one) && !mayReadAll(one))
  expect(statements.length).toBeGreaterThan(350)
  const fill = async (count: number) => {
    for (const part of fillOf(count)) await client.query(part)
  }
  return { url, client, statements, fill }
}

test(`no statement of a transaction reads a table of ${PARCELS} parcels from end to end`, async () => {
  const { client, statements, fill } = await openStore()
  await fill(PARCELS)
  await client.query('analyze')
  await planWith(client, PLAN_SETTINGS)
  expect(await scansOf(client, statements)).toEqual([])
}, 240_000)

test('a plan made while tables had few rows reads no whole table after they have grown', async () => {
  const { client, statements, fill } = await openStore()
  await planWith(client, PLAN_SETTINGS)
  await fill(10)
  expect(await scansOf(client, statements)).toEqual([])
  await client.query('analyze')
  expect(await scansOf(client, statements)).toEqual([])
}, 240_000)

test('no statement reads a whole table that has grown since it was analyzed', async () => {
  const { url, client, statements, fill } = await openStore()
  const alone = (await sentAloneOnPostgres(url)).filter((one) => !mayReadAll(one))
  expect(alone.length).toBeGreaterThan(25)
  await client.query('analyze')
  await fill(PARCELS)
  expect(await scansOf(client, alone)).toEqual([])
  await planWith(client, PLAN_SETTINGS)
  expect(await scansOf(client, statements)).toEqual([])
}, 240_000)

test('each filter of the audit trail is planned by the index that begins with its columns', async () => {
  const { client, statements, fill } = await openStore()
  const lists = statements.flatMap((statement) => {
    const [, columns] = /"operator_action" where \(\(([^)]*)\) < /.exec(statement) ?? []
    return columns === undefined ? [] : [{ statement, columns: columns.replaceAll('"', '') }]
  })
  expect(lists).toHaveLength(5)
  await fill(PARCELS)
  await client.query('analyze')
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
