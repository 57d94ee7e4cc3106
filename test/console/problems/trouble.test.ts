import { expect, test } from 'vitest'
import { type KnownQuarantine, QUARANTINE_SUBJECTS, tellQuarantined } from '../../../src/console/problems/trouble.ts'
import { HOUR_MS, MINUTE_MS } from '../../support/runner/constants.ts'

const NONE: KnownQuarantine = { troubles: [], told: [] }

/** Reports `fresh` newly quarantined pushes at each of these times. Returns the counts in the events that each report causes. */
function told(looks: readonly (readonly [atMs: number, fresh: number])[]): readonly (readonly number[])[] {
  let known = NONE
  return looks.map(([atMs, fresh]) => {
    const counts = fresh === 0 ? [] : [{ atMs, reason: 'json_syntax', count: fresh }]
    const { events, kept, over } = tellQuarantined(known, counts, atMs)
    const after = (before: KnownQuarantine['troubles'], isOne: (subject: string) => boolean) => {
      const saved = kept.filter(({ subject }) => isOne(subject))
      const rest = before.filter(({ subject }) => !over.includes(subject) && !saved.some((one) => one.subject === subject))
      return [...rest, ...saved]
    }
    const isTrouble = (subject: string) => subject.startsWith(QUARANTINE_SUBJECTS)
    known = { troubles: after(known.troubles, isTrouble), told: after(known.told, (subject) => !isTrouble(subject)) }
    return events.map((event) => ('count' in event ? event.count : 0))
  })
}

test('a flood into quarantine is reported at its first pushes and each time it has grown tenfold', () => {
  const flood = Array.from({ length: 72 }, (_, at) => [at * 5000, 5] as const)
  expect(told(flood).flat()).toEqual([5, 50])
  expect(told([...flood, [400_000, 140]]).flat()).toEqual([5, 50, 500])
})

test('a trickle into quarantine is reported once an hour, with how many have come so far', () => {
  const trickle = Array.from({ length: 13 }, (_, at) => [at * 10 * MINUTE_MS, 1] as const)
  expect(told(trickle).flat()).toEqual([1, 7, 13])
})

test('after an hour without a quarantined push, the next one starts a new count', () => {
  expect(
    told([
      [0, 4],
      [30 * MINUTE_MS, 1],
      [HOUR_MS, 0],
      [2 * HOUR_MS, 0],
      [3 * HOUR_MS, 2],
    ]),
  ).toEqual([[4], [], [5], [], [2]])
})

test('each reason of quarantine has its own event, with the time of its first push', () => {
  const { events } = tellQuarantined(
    NONE,
    [
      { atMs: 2000, reason: 'schema', count: 1 },
      { atMs: 1000, reason: 'schema', count: 1 },
      { atMs: 3000, reason: 'utf8', count: 1 },
    ],
    5000,
  )
  expect(events).toEqual([
    { event: 'pushes_quarantined', reason: 'schema', count: 2, since: '1970-01-01T00:00:01.000Z' },
    { event: 'pushes_quarantined', reason: 'utf8', count: 1, since: '1970-01-01T00:00:03.000Z' },
  ])
})
