import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseSync, Visitor } from 'oxc-parser'
import { expect, test } from 'vitest'

const SOURCES = fileURLToPath(new URL('../../src/', import.meta.url))

/**
 * The loops that may await something in every turn. A key is `file: what is awaited`, and its value says what the loop goes over. On PostgreSQL each
 * await is a round trip, often while rows are locked. So rows are read and written in sets, and only loops over something else may await.
 */
const EXCEPTED: Readonly<Record<string, string>> = {
  'core/flow/history/record.tx.ts: orQuarantined': 'observations of a batch that could not be recorded, each in a transaction of its own',
  'core/flow/history/record.tx.ts: loadNeeds': 'rounds, at most NEEDS_MAX; each loads everything that the batch still lacks',
  'core/flow/history/record.tx.ts: tx.loadNeeds': 'groups of parcels to be joined; each group fills at most one parcel',
  'core/flow/polling/claim-polls.tx.ts: ports.store.transaction':
    'transactions: each turn has a new one, and holds no lock of the one before',
  'core/flow/polling/schedule-poll.tx.ts: ports.store.transaction': 'transactions: each turn has a new one',
  'core/flow/polling/claim-polls.tx.ts: look': 'pages of parcels, at most LOOKS_MAX',
  'core/flow/polling/watch-parcels.tx.ts: tx.saveEndpoint': 'endpoints, and only after the clock was put back',
  'core/flow/delivery/edit-endpoints.tx.ts: tx.removeEndpoint': 'endpoints that the config has not named for long, each once',
  'core/flow/delivery/edit-endpoints.tx.ts: tx.saveEndpoint': 'endpoints that the config no longer names, each once',
  'core/flow/delivery/edit-endpoints.tx.ts: recordEvent': 'the same endpoints',
  'core/store/delivery/endpoint-backlogs.ts: countBacklog':
    'endpoints with a hundred waiting or dead deliveries, counted in parts for a page or a scrape',
  'console/events/tell-operators.tx.ts: recordOperatorEvent': 'events; the list of endpoints is read once for all events',
  'console/events/tell-operators.tx.ts: saveTrouble': 'reasons of quarantine, of which there are few',
  'console/events/tell-operators.tx.ts: endTrouble': 'the same reasons',
  'core/flow/delivery/dispatching/claim-deliveries.tx.ts: findProbe': 'searches for a probe, at most three, until one is found',
  'core/flow/delivery/edit-endpoints.tx.ts: saveConfigured': 'endpoints of the config, at a start and a reload',
  'core/flow/delivery/dispatching/settle.tx.ts: healthOf':
    'attempts; an attempt reads only if a probe of its endpoint may be due, which is rare',
  'core/flow/delivery/dispatching/settle.tx.ts: tx.saveEndpoint': 'endpoints that an attempt has disabled or given other keys',
  'core/flow/delivery/dispatching/settle.tx.ts: recordOperatorEvent': 'endpoints that have just failed or recovered',
  'core/store/admin/parcel-lists.ts: lookOn': 'pages of rows, until enough rows match; at most LOOKED_AT_MAX rows in all',
  'core/store/admin/parcel-lists.ts: withRest': 'the same pages: all identifiers of a page are read at once',
  'core/store/delivery/endpoint-backlogs.ts: session.all': 'parts of a backlog, so that other reads may run between them',
  'core/store/delivery/endpoint-backlogs.ts: nextTurn': 'the same parts',
  'core/store/history/join.ts: heldBy': 'parcels of a join; nothing is read, because their contents are in memory',
  'core/store/history/join.ts: contents.idOf':
    'contents that are not in memory, so none on PostgreSQL: there a join reads its contents in advance',
  'server/postgres/postgres.ts: once': 'attempts, each a transaction of its own',
  'server/postgres/postgres.ts: pause': 'the same attempts',
  'server/postgres/postgres-migrate.ts: readVersion': 'reads of the version, at most LOOKS_MAX, before the store is used',
  'server/postgres/postgres-migrate.ts: db': 'the same reads',
  'server/postgres/postgres-migrate.ts: step.up': 'steps from one version to the next, before the store is used',
  'server/postgres/admin/replica-table.ts: client.query': 'registrations of this process, repeated if the server has lost commits',
  'server/postgres/admin/replica-table.ts: register': 'the same registrations',
  'server/postgres/history/apply-batch.ts: joinParcels': 'joins of a batch, each of which builds on the one before (see decision 0018)',
  'server/postgres/history/apply-batch.ts: counted': 'one number, which all joins of a batch wait for together',
  'core/store/history/parcel-view.ts: listPushes': 'pages of the pushes of one parcel',
}

/** Folders of the store that are not checked, with what their loops go over. */
const NOT_READ: Readonly<Record<string, string>> = {
  'core/store/sqlite/': 'rows of a local file, without a network',
  'server/postgres/migrations/': 'tables and indexes, before the relay uses them',
  'server/postgres/moving/': 'tables, and attempts to lock them; rows are moved in sets',
}

/**
 * Returns what a module awaits in a loop, or in a callback that `forEach` or `reduce` calls, as `path: what` with the line. Awaits in a
 * callback of `map` do not count, because they run at the same time. An await in the list of a `for` does not count either, because it runs
 * only once.
 */
function awaitedInLoops(path: string, source: string): readonly { readonly what: string; readonly line: number }[] {
  const found: { what: string; line: number }[] = []
  /** The functions around the current node, each with its loops. Of each loop, this stores the part that is evaluated only once. */
  const loops: Span[][] = [[]]
  const enter = (once: Span) => void loops.at(-1)?.push(once)
  const leave = () => void loops.at(-1)?.pop()
  const inTurn = new Set<number>()
  const into = ({ start }: Span) => void loops.push(inTurn.has(start) ? [NOWHERE] : [])
  const out = () => void loops.pop()
  const note = (start: number, end: number) => {
    const what = /^[\w.]+/.exec(source.slice(start, end))?.[0] ?? source.slice(start, end)
    found.push({ what: `${path}: ${what}`, line: source.slice(0, start).split('\n').length })
  }
  new Visitor({
    ForStatement: ({ init }) => enter(init ?? NOWHERE),
    'ForStatement:exit': leave,
    ForInStatement: ({ right }) => enter(right),
    'ForInStatement:exit': leave,
    ForOfStatement(node) {
      if (node.await) note(node.right.start, node.right.end)
      enter(node.right)
    },
    'ForOfStatement:exit': leave,
    WhileStatement: () => enter(NOWHERE),
    'WhileStatement:exit': leave,
    DoWhileStatement: () => enter(NOWHERE),
    'DoWhileStatement:exit': leave,
    CallExpression({ callee, arguments: given }) {
      const isInTurn = callee.type === 'MemberExpression' && /\.(?:forEach|reduce)$/.test(source.slice(callee.start, callee.end))
      if (isInTurn) for (const { start } of given) inTurn.add(start)
    },
    ArrowFunctionExpression: into,
    'ArrowFunctionExpression:exit': out,
    FunctionExpression: into,
    'FunctionExpression:exit': out,
    FunctionDeclaration: into,
    'FunctionDeclaration:exit': out,
    AwaitExpression({ argument }) {
      const { start, end } = argument
      if (loops.at(-1)?.some((once) => start < once.start || start >= once.end)) note(start, end)
    },
  }).visit(parseSync(path, source).program)
  return found
}

interface Span {
  readonly start: number
  readonly end: number
}

const NOWHERE: Span = { start: -1, end: -1 }

test('transactions of the writer, and the store on PostgreSQL, do not wait row by row', () => {
  const isOfStore = (path: string) =>
    /^(?:core\/store|server\/postgres)\/.*\.ts$|\.rows\.ts$/.test(path) && !Object.keys(NOT_READ).some((folder) => path.startsWith(folder))
  const paths = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.tx.ts') || isOfStore(path))
  expect(paths.length).toBeGreaterThan(80)
  const found = paths.flatMap((path) => awaitedInLoops(path, readFileSync(SOURCES + path, 'utf8')))
  expect(found.filter(({ what }) => !(what in EXCEPTED))).toEqual([])
  // Every exception is still needed.
  expect(Object.keys(EXCEPTED).filter((what) => !found.some((one) => one.what === what))).toEqual([])
})

test('an await in any kind of loop is found, and an await outside is not', () => {
  const planted = `
    for (const row of rows) await tx.save(row)
    for await (const row of tx.rows()) count(row)
    while (await tx.more()) done()
    do { if (one) { await tx.one() } } while (two)
    await rows.reduce(async (before, row) => { await tx.each(row) }, null)
    await Promise.all(rows.map(async (row) => [row, await tx.sentTogether(row)]))
    await tx.all(rows.map((row) => row.id))
    const later = () => { for (const row of rows) keep(async () => { await tx.later(row) }) }
    for (const row of rows) keep(row)
    for (const row of await tx.allRows()) keep(row)
    for (const row of rows) for (const part of await tx.parts(row)) keep(part)
    await tx.saveAll(rows)`
  expect(awaitedInLoops('x', planted)).toEqual([
    { what: 'x: tx.save', line: 2 },
    { what: 'x: tx.rows', line: 3 },
    { what: 'x: tx.more', line: 4 },
    { what: 'x: tx.one', line: 5 },
    { what: 'x: tx.each', line: 6 },
    { what: 'x: tx.parts', line: 12 },
  ])
})
