import { describe, expect, test } from 'vitest'
import { createOperationQueries } from '../../../../src/console/audit/operations.routes.ts'
import type { ActionQuery, KeptAction, OperatorAction } from '../../../../src/core/domain/admin/operator-action.ts'
import type { TimeCursor } from '../../../../src/core/domain/delivery/operator-event.ts'
import { OPERATOR } from '../../../support/relay/operator.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { casesOf } from '../../../support/runner/long-form.ts'
import { drawWith, seeded } from '../../../support/runner/seeded.ts'
import { engines } from '../../../support/store/engines.ts'
import { openErasures } from '../../../support/store/erasures.ts'
import { changeStoredRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

/** PostgreSQL refuses to put a text of this length into an index. */
const LONG_TEXT = Array.from({ length: 20_000 }, seeded(1))
  .map((drawn) => String.fromCodePoint(0x4e00 + Math.floor(drawn * 20_000)))
  .join('')
const NAMES = ['ops', 'alice', 'o', LONG_TEXT]
const ACTIONS = ['parcel.watched', 'endpoint.tested', 'job.cancelled'] as const
const TARGETS = [
  { kind: 'parcel', id: 'AB1001' },
  { kind: 'parcel', id: 'AB1002' },
  { kind: 'endpoint', id: '1' },
  { kind: 'job', id: '1' },
  { kind: 'store', id: LONG_TEXT },
] as const

const ALL = { by: null, action: null, fromMs: null, toMs: null, cursor: null, limit: 10 }

async function open(engine: (typeof engines)[number]) {
  const { reads, writes, path } = await openStore(NOON, engine)
  /** Reads all pages. Calls `between` after each page. */
  async function all(query: Omit<ActionQuery, 'before'>, between: () => Promise<void> = async () => undefined) {
    const found: KeptAction[] = []
    let [before, pages]: [TimeCursor | null, number] = [null, 0]
    do {
      const page = await reads.listActions({ ...query, before })
      found.push(...page.actions)
      before = page.next
      pages += 1
      expect(page.actions.length).toBeLessThanOrEqual(query.limit)
      await between()
    } while (before !== null)
    return { found, pages }
  }
  return { reads, writes, path, all }
}

function matches(
  action: KeptAction,
  { by = null, action: name = null, targets = null, fromMs = null, toMs = null }: Omit<ActionQuery, 'before'>,
): boolean {
  return (
    (by === null || action.by.name === by) &&
    (name === null || action.action === name) &&
    (targets === null || targets.some(({ kind, id }) => kind === action.target?.kind && id === action.target.id)) &&
    (fromMs === null || action.atMs >= fromMs) &&
    (toMs === null || action.atMs < toMs)
  )
}

describe.each(engines)('the filter of the audit trail on $name', (engine) => {
  test.each(Array.from({ length: casesOf(6, 2) }, (_, seed) => seed))(
    'finds exactly what matches, whatever the page: seed %i',
    async (seed) => {
      const { writes, all } = await open(engine)
      const draw = drawWith(seeded(seed))
      const anAction = (): OperatorAction => ({
        // Many actions have the same time.
        atMs: NOON + draw.below(6),
        by: { kind: 'app', name: draw.pick(NAMES), address: null },
        action: draw.pick(ACTIONS),
        target: draw.below(5) === 0 ? null : draw.pick(TARGETS),
        detail: {},
      })
      for (let nth = 0; nth < 60; nth++) await writes.recordAction(anAction())
      const { found: trail } = await all({ limit: 100 })
      expect(trail).toHaveLength(60)
      const maybe = <Value>(value: () => Value): Value | null => (draw.below(2) === 0 ? value() : null)
      for (let nth = 0; nth < 40; nth++) {
        const query = {
          by: maybe(() => draw.pick(NAMES.slice(0, 3))),
          action: maybe(() => draw.pick(ACTIONS)),
          targets: maybe(() => [...new Set([draw.pick(TARGETS.slice(0, 4)), draw.pick(TARGETS.slice(0, 4))])]),
          fromMs: maybe(() => NOON + draw.below(6)),
          toMs: maybe(() => NOON + draw.below(7)),
          limit: 1 + draw.below(7),
        }
        expect((await all(query)).found, JSON.stringify(query)).toEqual(trail.filter((action) => matches(action, query)))
      }
    },
  )

  test('its pages are stable while orders are given', async () => {
    const { writes, all } = await open(engine)
    const give = (atMs: number) =>
      writes.recordAction({
        atMs,
        by: { kind: 'app', name: 'ops', address: null },
        action: 'parcel.watched',
        target: TARGETS[0],
        detail: {},
      })
    for (let nth = 0; nth < 7; nth++) await give(NOON + nth)
    for (const query of [{}, { by: 'ops' }, { action: 'parcel.watched' }, { by: 'ops', targets: [TARGETS[0]] }]) {
      const { found: before } = await all({ ...query, limit: 100 })
      let late = NOON + before.length
      const { found } = await all({ ...query, limit: 2 }, () => give(late++))
      expect(found).toEqual(before)
    }
  })

  test('a page about one thing looks at a limited number of actions, and says that there are more', async () => {
    const { writes, path, all, reads } = await open(engine)
    await writes.recordAction({
      atMs: NOON,
      by: { kind: 'app', name: 'alice', address: null },
      action: 'parcel.watched',
      target: TARGETS[0],
      detail: {},
    })
    await changeStoredRows(
      path,
      `insert into operator_action (at_ms, by_kind, by_name, action, target_kind, target, detail)
       with recursive n (n) as (select 1 union all select n + 1 from n where n < 5000)
       select ${NOON} + n, 'app', 'ops', 'parcel.refreshed', 'parcel', 'AB1001', '{}' from n`,
    )
    const query = { by: 'alice', targets: [TARGETS[0]], limit: 10 }
    expect(await reads.listActions({ ...query, before: null })).toMatchObject({ actions: [], next: { atMs: NOON + 3001 } })
    const { found, pages } = await all(query)
    expect(found).toMatchObject([{ action: 'parcel.watched', by: { name: 'alice' } }])
    expect(pages).toBe(3)
  })

  test('an erased parcel is found by no filter, and a living one still is', async () => {
    const { push, forget, writes, reads } = await openErasures(engine)
    for (const id of ['GONE0001', 'KEPT0001']) {
      await push({ trackingIds: [id] })
      await writes.recordAction({ atMs: NOON, by: OPERATOR, action: 'parcel.watched', target: { kind: 'parcel', id }, detail: {} })
    }
    const { actions: foundIn } = createOperationQueries({ reads })
    const found = async (id: string) => (await foundIn({ ...ALL, target: { kind: 'parcel', id } })).actions.length
    expect([await found('GONE0001'), await found('KEPT0001')]).toEqual([1, 1])
    await forget('GONE0001')
    expect([await found('GONE0001'), await found('KEPT0001')]).toEqual([0, 1])
    expect((await foundIn({ ...ALL, target: null })).actions.map(({ target }) => target?.id)).toEqual([undefined, 'KEPT0001', '(erased)'])
  })

  test('a parcel is found under each of its identifiers', async () => {
    const { push, writes, reads } = await openStore(NOON, engine)
    await push({ trackingIds: ['AB1001', 'AB1002'] })
    for (const [nth, id] of ['AB1001', 'AB1002', 'AB1003'].entries())
      await writes.recordAction({ atMs: NOON + nth, by: OPERATOR, action: 'parcel.refreshed', target: { kind: 'parcel', id }, detail: {} })
    const { actions: foundIn } = createOperationQueries({ reads })
    for (const id of ['AB1001', 'AB1002'])
      expect((await foundIn({ ...ALL, target: { kind: 'parcel', id } })).actions.map(({ target }) => target?.id)).toEqual([
        'AB1002',
        'AB1001',
      ])
  })
})
