import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  deadlineOf,
  describeRule,
  earliestDueMs,
  judge,
  nextTimeOfDay,
  sightOf,
  type WatchdogRule,
  type WatchedEntry,
} from '../../../src/insight/watchdogs/watchdog.rules.ts'
import { aRule } from '../../support/insight/a-rule.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, NOON } from '../../support/runner/constants.ts'

const STATUSES = ['Created', 'Ingested', 'DeliveryStarted', 'DeliverySucceeded', 'Returned']

function entry(status: string, atMs: number, learntAtMs: number | null = atMs): WatchedEntry {
  return { status, detailedStatus: status, atMs, learntAtMs }
}

function parcel(...entries: readonly WatchedEntry[]) {
  return { entries, distributionType: 'Mailbox', labels: ['priority', 'priority=high'] }
}

const sinceOf = (rule: WatchdogRule, ...entries: readonly WatchedEntry[]) =>
  deadlineOf(rule, 'Europe/Stockholm', parcel(...entries))?.sinceMs ?? null

describe('9.2: when a parcel is stalled', () => {
  test('no scan for 48 h after Ingested', () => {
    const rule = aRule()
    expect(sinceOf(rule)).toBe(null)
    expect(sinceOf(rule, entry('Ingested', NOON))).toBe(NOON + 48 * HOUR_MS)
    expect(sinceOf(rule, entry('Ingested', NOON), entry('TerminalArrived', NOON + 1000))).toBe(null)
    expect(sinceOf(rule, entry('Ingested', NOON), entry('Created', NOON - 1000))).toBe(NOON + 48 * HOUR_MS)
    expect(sinceOf(rule, entry('Ingested', NOON), entry('Ingested', NOON + HOUR_MS))).toBe(NOON + 49 * HOUR_MS)
  })

  test('DeliveryStarted and not delivered by 22:00 of the same day', () => {
    const rule = aRule({ when: { status: ['DeliveryStarted'] }, notWithinMs: null, notBy: '22:00', until: ['DeliverySucceeded'] })
    const at22 = Date.UTC(2026, 2, 1, 21)
    expect(sinceOf(rule, entry('DeliveryStarted', NOON))).toBe(at22)
    expect(sinceOf(rule, entry('DeliveryStarted', NOON), entry('TerminalArrived', NOON + HOUR_MS))).toBe(at22)
    expect(sinceOf(rule, entry('DeliveryStarted', NOON), entry('DeliverySucceeded', NOON + HOUR_MS))).toBe(null)
    expect(sinceOf(rule, entry('DeliveryStarted', NOON), entry('DeliveryStarted', NOON + DAY_MS))).toBe(at22 + DAY_MS)
    // After 22:00 the next day counts.
    expect(sinceOf(rule, entry('DeliveryStarted', at22 + 1000))).toBe(at22 + DAY_MS)
  })

  test('returned: at once, once, and until nothing', () => {
    const rule = aRule({ when: { status: ['Returned'] }, notWithinMs: null, until: [] })
    expect(sinceOf(rule, entry('Returned', NOON))).toBe(NOON)
    expect(sinceOf(rule, entry('Returned', NOON), entry('Returned', NOON + DAY_MS), entry('Created', NOON + DAY_MS))).toBe(NOON)
  })

  test('9.1: filters: detailed status, distribution type, label', () => {
    const asked = (when: Partial<WatchdogRule['when']>) =>
      sinceOf(aRule({ when: { status: ['Ingested'], ...when } }), entry('Ingested', NOON))
    expect(asked({ detailedStatus: ['Ingested'] })).not.toBe(null)
    expect(asked({ detailedStatus: ['Other'] })).toBe(null)
    expect(asked({ distributionType: ['Mailbox'] })).not.toBe(null)
    expect(asked({ distributionType: ['PickupPoint'] })).toBe(null)
    expect(asked({ label: ['priority'] })).not.toBe(null)
    expect(asked({ label: ['priority=low', 'priority=high'] })).not.toBe(null)
    expect(asked({ label: ['priority=low'] })).toBe(null)
  })

  test('6.1: an entry counts from when the relay learnt of it, if the carrier’s clock is ahead', () => {
    expect(sinceOf(aRule(), entry('Ingested', NOON + 10 * DAY_MS, NOON))).toBe(NOON + 48 * HOUR_MS)
    expect(sinceOf(aRule(), entry('Ingested', NOON, NOON + DAY_MS))).toBe(NOON + 48 * HOUR_MS)
  })

  test('a push with milliseconds and a poll without them give the same time', () => {
    expect(sinceOf(aRule(), entry('Ingested', NOON + 250))).toBe(sinceOf(aRule(), entry('Ingested', NOON)))
  })
})

describe('times of day', () => {
  const at = (text: string) => Date.parse(text)
  test.each([
    ['2026-03-28T12:00:00Z', '22:00', '2026-03-28T21:00:00Z'],
    ['2026-03-28T21:00:00Z', '22:00', '2026-03-29T20:00:00Z'],
    ['2026-10-24T21:30:00Z', '22:00', '2026-10-25T21:00:00Z'],
    // The clock skips from 02:00 to 03:00.
    ['2026-03-29T00:00:00Z', '02:30', '2026-03-29T01:30:00Z'],
    ['2026-03-29T00:45:00Z', '02:30', '2026-03-29T01:30:00Z'],
    ['2026-12-31T23:30:00Z', '00:00', '2027-01-01T23:00:00Z'],
  ])('after %s the clock shows %s at %s', (from, time, to) => {
    expect(new Date(nextTimeOfDay(time, 'Europe/Stockholm', at(from))).toISOString()).toBe(new Date(at(to)).toISOString())
  })

  test('the next is after the time, within 25 hours, and shows the time of day', () => {
    const zones = ['UTC', 'Europe/Stockholm', 'America/New_York', 'Asia/Kolkata', 'Pacific/Auckland', 'Australia/Lord_Howe']
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        fc.integer({ min: 0, max: 23 }),
        fc.integer({ min: 0, max: 730 * 24 * 60 }),
        (zone, hour, minute) => {
          const from = NOON + minute * MINUTE_MS
          const time = `${String(hour).padStart(2, '0')}:15`
          const next = nextTimeOfDay(time, zone, from)
          expect(next).toBeGreaterThan(from)
          expect(next - from).toBeLessThanOrEqual(25 * HOUR_MS)
          const shown = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(
            next,
          )
          // Clocks are put ahead, and so skip a time, between 01:59 and 04:00.
          if (hour < 2 || hour > 3) expect(shown).toBe(time)
        },
      ),
    )
  })
})

const anEntry = fc
  .tuple(fc.constantFrom(...STATUSES), fc.integer({ min: 0, max: 200 }), fc.option(fc.integer({ min: 0, max: 200 })))
  .map(([status, at, learnt]) => entry(status, NOON + at * HOUR_MS, learnt === null ? null : NOON + learnt * HOUR_MS))
const someStatuses = fc.uniqueArray(fc.constantFrom(...STATUSES), { minLength: 1, maxLength: 2 })
const someRule = fc
  .record({
    status: someStatuses,
    time: fc.oneof(
      fc.integer({ min: 1, max: 100 }).map((hours) => ({ notWithinMs: hours * HOUR_MS, notBy: null })),
      fc.constant({ notWithinMs: null, notBy: '22:00' }),
      fc.constant({ notWithinMs: null, notBy: null }),
    ),
    until: fc.option(fc.uniqueArray(fc.constantFrom(...STATUSES), { maxLength: 2 })),
  })
  .map(({ status, time, until }) => aRule({ when: { status }, until, ...time }))

describe('9.2: a rule is a pure function', () => {
  test('the order in which entries are given does not matter', () => {
    fc.assert(
      fc.property(someRule, fc.array(anEntry, { maxLength: 8 }), fc.infiniteStream(fc.nat()), (rule, entries, order) => {
        const shuffled = entries.map((one) => [order.next().value ?? 0, one] as const).sort(([a], [b]) => a - b)
        expect(sinceOf(rule, ...shuffled.map(([, one]) => one))).toBe(sinceOf(rule, ...entries))
      }),
    )
  })

  test('the model: the watch begins with an entry that nothing later ends', () => {
    fc.assert(
      fc.property(someRule, fc.array(anEntry, { maxLength: 8 }), (rule, entries) => {
        const isBegun = ({ status }: WatchedEntry) => rule.when.status?.includes(status) === true
        const open = entries.filter((one) => {
          const later = entries.filter((other) => !isBegun(other) && other.atMs >= one.atMs)
          return isBegun(one) && !later.some(({ status }) => rule.until === null || rule.until.includes(status))
        })
        expect(sinceOf(rule, ...entries) === null).toBe(open.length === 0)
      }),
    )
  })

  test('recording never plans a look too late', () => {
    fc.assert(
      fc.property(
        fc.array(someRule, { minLength: 1, maxLength: 3 }),
        fc.array(anEntry, { minLength: 1, maxLength: 6 }),
        (rules, entries) => {
          const zone = 'Europe/Stockholm'
          const planned = entries.flatMap((one) => earliestDueMs({ rules, zone }, one) ?? [])
          const deadlines = rules.flatMap((rule) => sinceOf(rule, ...entries) ?? [])
          if (deadlines.length > 0) expect(Math.min(...planned)).toBeLessThanOrEqual(Math.min(...deadlines))
        },
      ),
    )
  })
})

describe('9.3: what is told of a parcel', () => {
  const rules = { rules: [aRule()], zone: 'UTC' }
  const sinceMs = NOON + 48 * HOUR_MS
  const look = { nowMs: sinceMs, loads: new Map([['no-scan', NOON]]), checkedAtMs: sinceMs, mayTellUnchecked: false }
  const stalled = parcel(entry('Ingested', NOON))
  const moving = parcel(entry('Ingested', NOON), entry('TerminalArrived', NOON + HOUR_MS))
  const told = { id: 1, rule: 'no-scan', sinceMs, toldAtMs: sinceMs, endedAtMs: null }

  test('before it is due: when to look', () => {
    expect(judge(rules, stalled, [], { ...look, nowMs: NOON })).toMatchObject({
      stalled: [],
      mustAsk: false,
      nextMs: sinceMs,
      isOpen: false,
    })
  })

  test('due: the carrier is asked first, unless it answered since', () => {
    expect(judge(rules, stalled, [], { ...look, checkedAtMs: null })).toMatchObject({ stalled: [], mustAsk: true })
    expect(judge(rules, stalled, [], { ...look, checkedAtMs: sinceMs - 1 })).toMatchObject({ stalled: [], mustAsk: true })
    expect(judge(rules, stalled, [], look)).toMatchObject({ stalled: [{ rule: 'no-scan', sinceMs, checked: true }], isOpen: true })
    const unchecked = judge(rules, stalled, [], { ...look, checkedAtMs: null, mayTellUnchecked: true })
    expect(unchecked.stalled).toEqual([{ rule: 'no-scan', sinceMs, checked: false }])
  })

  test('what was learnt late is asked about again', () => {
    const late = parcel(entry('Ingested', NOON - 9 * DAY_MS, sinceMs))
    expect(judge({ ...rules, rules: [aRule({ past: true })] }, late, [], { ...look, checkedAtMs: sinceMs - 1 }).mustAsk).toBe(true)
  })

  test('told once; over when a later entry comes; not told again after it', () => {
    expect(judge(rules, stalled, [told], look)).toMatchObject({ stalled: [], recovered: [], isOpen: true, nextMs: null })
    expect(judge(rules, moving, [told], look)).toMatchObject({ recovered: [{ breach: told, because: 'observation' }], isOpen: false })
    expect(judge(rules, stalled, [{ ...told, endedAtMs: 5 }], look)).toMatchObject({ stalled: [], recovered: [], isOpen: false })
  })

  test('a clock that is put back ends nothing', () => {
    expect(judge(rules, stalled, [told], { ...look, nowMs: NOON })).toMatchObject({ stalled: [], recovered: [], isOpen: true })
  })

  test('a new rule counts from its first load, unless `past` is true', () => {
    const fresh = { rules: [aRule({ past: false })], zone: 'UTC' }
    const loads = new Map([['no-scan', sinceMs]])
    expect(judge(fresh, stalled, [], { ...look, loads })).toMatchObject({ stalled: [], mustAsk: false, nextMs: null })
    expect(judge(fresh, stalled, [], { ...look, loads: new Map([['no-scan', sinceMs - 1]]) }).stalled).toHaveLength(1)
    expect(judge(rules, stalled, [], { ...look, loads }).stalled).toHaveLength(1)
  })

  test('a rule that is removed ends what was told by it', () => {
    expect(judge({ ...rules, rules: [] }, stalled, [told], look).recovered).toEqual([{ breach: told, because: 'rule' }])
  })

  test('9.4: a rule that is changed ends what was told by it, also with `past`, unless it finds the same', () => {
    const loads = new Map([['no-scan', sinceMs + HOUR_MS]])
    const because = (parcelNow: typeof stalled, rule: Parameters<typeof aRule>[0], loaded = loads) =>
      judge({ rules: [aRule(rule)], zone: 'UTC' }, parcelNow, [told], { ...look, loads: loaded }).recovered.map((one) => one.because)
    expect(because(stalled, { past: true, notWithinMs: 60 * HOUR_MS })).toEqual(['rule'])
    expect(because(stalled, { past: true, when: { status: ['Created'] } })).toEqual(['rule'])
    // It lasts by the new rule too, and then a scan ends it.
    expect(because(stalled, { past: true, until: ['TerminalArrived'] })).toEqual([])
    const scanned = parcel(entry('Ingested', NOON), entry('TerminalArrived', sinceMs + 2 * HOUR_MS))
    expect(because(scanned, { past: true, until: ['TerminalArrived'] })).toEqual(['observation'])
    expect(because(scanned, { past: true, notWithinMs: 60 * HOUR_MS })).toEqual(['rule'])
    expect(because(scanned, { past: true, notWithinMs: 60 * HOUR_MS }, new Map([['no-scan', sinceMs]]))).toEqual(['observation'])
  })
})

describe('9.5: what the relay sees', () => {
  const senses = { nowMs: NOON, pollsFailSinceMs: null, pushesAreHealthy: true, lastPushAtMs: NOON }
  test.each([
    ['polls', senses],
    ['polls', { ...senses, pushesAreHealthy: false, lastPushAtMs: null }],
    ['none', { ...senses, pollsFailSinceMs: NOON - MINUTE_MS }],
    ['pushes', { ...senses, pollsFailSinceMs: NOON - HOUR_MS }],
    ['none', { ...senses, pollsFailSinceMs: NOON - HOUR_MS, lastPushAtMs: NOON - HOUR_MS }],
    ['none', { ...senses, pollsFailSinceMs: NOON - HOUR_MS, pushesAreHealthy: false }],
    ['none', { ...senses, pollsFailSinceMs: NOON - HOUR_MS, lastPushAtMs: null }],
  ] as const)('%s', (sight, given) => {
    expect(sightOf(given)).toBe(sight)
  })
})

test.each([
  ['Ingested, and nothing within 2d', {}],
  ['Ingested, and no DeliveryStarted or Returned within 2d', { until: ['DeliveryStarted', 'Returned'] }],
  ['Ingested, and 1m have passed', { until: [], notWithinMs: MINUTE_MS }],
  ['Ingested, and nothing by 22:00', { notWithinMs: null, notBy: '22:00' }],
  ['Ingested, and 22:00 has come', { until: [], notWithinMs: null, notBy: '22:00' }],
  ['Ingested, from then on', { until: [], notWithinMs: null }],
  ['Ingested, from then until any later entry', { notWithinMs: null }],
  ['Ingested, from then until DeliverySucceeded or Returned', { until: ['DeliverySucceeded', 'Returned'], notWithinMs: null }],
  ['Created or Ingested, priority=high, and nothing within 2d', { when: { status: ['Created', 'Ingested'], label: ['priority=high'] } }],
])('a rule is said in words: %s', (words, rule) => {
  expect(describeRule(aRule(rule))).toBe(words)
})
