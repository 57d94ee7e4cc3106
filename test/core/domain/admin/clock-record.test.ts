import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type ClockReading,
  type ClockRecord,
  decodeClockRecord,
  doubtOf,
  encodeClockRecord,
  markLife,
  noteClock,
  outlivedBy,
} from '../../../../src/core/domain/admin/clock-record.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../../support/runner/constants.ts'

const NONE = { carrierAheadMs: null, machineAheadMs: null }
const at = (wallMs: number, monotonicMs: number, process = 'one'): ClockReading => ({ process, wallMs, monotonicMs })

function recordOf(...readings: readonly ClockReading[]): ClockRecord {
  const record = readings.reduce<ClockRecord | null>(noteClock, null)
  if (record === null) throw new Error('there are no readings')
  return record
}

describe('lived time', () => {
  test('it is the time in which processes ran, whatever the wall clock does meanwhile', () => {
    const step = fc.record({
      ranMs: fc.nat(40 * DAY_MS),
      jumpMs: fc.integer({ min: -900 * DAY_MS, max: 900 * DAY_MS }),
      restarts: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        let [wallMs, monotonicMs, process, livedMs] = [NOON, 5, 0, 0]
        let record = noteClock(null, at(wallMs, monotonicMs, String(process)))
        for (const { ranMs, jumpMs, restarts } of steps) {
          if (restarts) process++
          monotonicMs = restarts ? ranMs : monotonicMs + ranMs
          wallMs += ranMs + jumpMs
          livedMs += restarts ? 0 : ranMs
          record = noteClock(record, at(wallMs, monotonicMs, String(process)))
          expect(record.livedMs).toBe(livedMs)
        }
      }),
    )
  })

  test('what was there at the first mark counts from that mark', () => {
    const highest = { deliveryId: 7, inboxId: 8, sequence: 9, parcelId: 3 }
    let record = markLife(recordOf(at(NOON, 0)), highest, 10 * DAY_MS)
    for (let day = 1; day <= 10; day++) {
      expect(outlivedBy(record, 10 * DAY_MS)).toMatchObject({ deliveryId: 0 })
      record = markLife(noteClock(record, at(NOON + day * DAY_MS, day * DAY_MS)), { ...highest, deliveryId: 7 + day }, 10 * DAY_MS)
    }
    expect(outlivedBy(record, 10 * DAY_MS)).toMatchObject({ deliveryId: 7, inboxId: 8, sequence: 9, parcelId: 3 })
    expect(outlivedBy(null, 0)).toMatchObject({ deliveryId: 0 })
  })

  test('the marks stay few, and survive the store', () => {
    let record = recordOf(at(NOON, 0))
    for (let hour = 1; hour < 24 * 300; hour++)
      record = markLife(
        noteClock(record, at(NOON + hour * HOUR_MS, hour * HOUR_MS)),
        { deliveryId: hour, inboxId: 0, sequence: 0, parcelId: 0 },
        90 * DAY_MS,
      )
    expect(record.marks.length).toBeLessThan(110)
    expect(outlivedBy(record, 90 * DAY_MS).deliveryId).toBeGreaterThan(24 * 208)
    expect(decodeClockRecord(encodeClockRecord(record))).toEqual(record)
    expect(decodeClockRecord(Buffer.from('{"livedMs":'))).toBeNull()
  })
})

describe('the doubt about the clock', () => {
  test('6.9: a clock that jumps ahead is doubted for a day of lived time', () => {
    const jumped = recordOf(at(NOON, 0), at(NOON + 300 * DAY_MS, 10))
    expect(doubtOf(jumped, NONE)).toMatchObject({ because: 'jumped' })
    expect(doubtOf(noteClock(jumped, at(NOON + 300 * DAY_MS + 23 * HOUR_MS, 23 * HOUR_MS)), NONE)).not.toBeNull()
    expect(doubtOf(noteClock(jumped, at(NOON + 301 * DAY_MS, DAY_MS + 10)), NONE)).toBeNull()
  })

  test('a clock that is put back after a jump is trusted at once, in the same process or the next', () => {
    const jumped = recordOf(at(NOON, 0), at(NOON + 300 * DAY_MS, 10))
    expect(doubtOf(noteClock(jumped, at(NOON + 20, 20)), NONE)).toBeNull()
    expect(doubtOf(noteClock(jumped, at(NOON + HOUR_MS / 2, 0, 'two')), NONE)).toBeNull()
    expect(doubtOf(noteClock(jumped, at(NOON + 300 * DAY_MS, 0, 'two')), NONE)).not.toBeNull()
  })

  test('a stop of more than 36 hours cannot be told from a jump', () => {
    expect(doubtOf(recordOf(at(NOON, 0), at(NOON + 35 * HOUR_MS, 0, 'two')), NONE)).toBeNull()
    expect(doubtOf(recordOf(at(NOON, 0), at(NOON + 37 * HOUR_MS, 0, 'two')), NONE)).toMatchObject({ because: 'jumped' })
  })

  test('a clock that is an hour off the clock of the carrier or the machine is doubted', () => {
    const record = recordOf(at(NOON, 0))
    expect(doubtOf(record, { ...NONE, carrierAheadMs: -59 * 60_000 })).toBeNull()
    expect(doubtOf(record, { ...NONE, carrierAheadMs: -HOUR_MS })).toEqual({ because: 'carrier', aheadMs: HOUR_MS })
    expect(doubtOf(record, { ...NONE, machineAheadMs: 2 * HOUR_MS })).toEqual({ because: 'machine', aheadMs: -2 * HOUR_MS })
  })
})
