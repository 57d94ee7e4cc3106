import { readdirSync, readFileSync } from 'node:fs'
import { parseSync, Visitor } from 'oxc-parser'
import { expect, test } from 'vitest'

const SOURCES = new URL('../../src/', import.meta.url).pathname

/**
 * Loops of the writer's transactions that wait in each turn, by file and by what they wait for. On PostgreSQL each wait is a round trip with the
 * locks of the rows held, so what is done to rows is done in sets; these do it to something else, and say to what.
 */
const EXCEPTED: Readonly<Record<string, string>> = {
  'flow/history/record.tx.ts: orQuarantined': 'observations of a batch that could not be recorded, each in a transaction of its own',
  'flow/history/record.tx.ts: tx.loadNeeds': 'rounds, at most NEEDS_MAX, each of which loads all that the batch lacks',
  'flow/polling/claim-polls.tx.ts: ports.store.transaction': 'each turn is a transaction of its own, which holds nothing of the one before',
  'flow/polling/reschedule-polls.tx.ts: ports.store.transaction': 'each turn is a transaction of its own',
  'flow/polling/poll-priority.tx.ts: look': 'looks, at most LOOKS_MAX, each of which reads a page of parcels',
  'flow/polling/watch-parcels.tx.ts: tx.saveEndpoint': 'endpoints, once for each time the clock was put back',
  'flow/delivery/unnamed-endpoints.tx.ts: tx.removeEndpoint': 'endpoints that nobody has named for long, each once',
  'flow/delivery/unnamed-endpoints.tx.ts: tx.saveEndpoint': 'endpoints that nobody names any more, each once',
  'flow/delivery/dispatching/settle.tx.ts: saveConfigured': 'endpoints of the config, at a start and a reload',
  'flow/delivery/dispatching/settle.tx.ts: healthOf': 'attempts, of which only one that changes what is known of its endpoint reads',
  'flow/delivery/dispatching/settle.tx.ts: tx.saveEndpoint': 'endpoints whose state or keys an attempt has changed',
  'flow/delivery/dispatching/settle.tx.ts: queueOperatorEvent': 'endpoints that have just failed or recovered',
}

/**
 * What a module awaits within a loop, or within a callback that is called for one row after the other, as `path: what`, with the line. What `map` begins for
 * all rows is sent together, and is one round trip.
 */
function awaitedInLoops(path: string, source: string): readonly { readonly what: string; readonly line: number }[] {
  const found: { what: string; line: number }[] = []
  /** For each function that is being read, how many loops of it. */
  const depths = [0]
  const loop = (change: 1 | -1) => () => {
    depths[depths.length - 1] = (depths.at(-1) ?? 0) + change
  }
  const inTurn = new Set<number>()
  const into = ({ start }: { readonly start: number }) => void depths.push(inTurn.has(start) ? 1 : 0)
  const out = () => void depths.pop()
  const note = (start: number, end: number) => {
    const what = /^[\w.]+/.exec(source.slice(start, end))?.[0] ?? source.slice(start, end)
    found.push({ what: `${path}: ${what}`, line: source.slice(0, start).split('\n').length })
  }
  new Visitor({
    ForStatement: loop(1),
    'ForStatement:exit': loop(-1),
    ForInStatement: loop(1),
    'ForInStatement:exit': loop(-1),
    ForOfStatement(node) {
      if (node.await) note(node.right.start, node.right.end)
      loop(1)()
    },
    'ForOfStatement:exit': loop(-1),
    WhileStatement: loop(1),
    'WhileStatement:exit': loop(-1),
    DoWhileStatement: loop(1),
    'DoWhileStatement:exit': loop(-1),
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
      if ((depths.at(-1) ?? 0) > 0) note(argument.start, argument.end)
    },
  }).visit(parseSync(path, source).program)
  return found
}

test('a transaction of the writer waits for nothing row by row', () => {
  const paths = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.tx.ts'))
  expect(paths.length).toBeGreaterThan(10)
  const found = paths.flatMap((path) => awaitedInLoops(path, readFileSync(SOURCES + path, 'utf8')))
  expect(found.filter(({ what }) => !(what in EXCEPTED))).toEqual([])
  // One that is gone is no exception any more.
  expect(Object.keys(EXCEPTED).filter((what) => !found.some((one) => one.what === what))).toEqual([])
})

test('a wait in any kind of loop is found, and one beside it is not', () => {
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
    await tx.saveAll(rows)`
  expect(awaitedInLoops('x', planted)).toEqual([
    { what: 'x: tx.save', line: 2 },
    { what: 'x: tx.rows', line: 3 },
    { what: 'x: tx.more', line: 4 },
    { what: 'x: tx.one', line: 5 },
    { what: 'x: tx.each', line: 6 },
  ])
})
