import { expect, test } from 'vitest'
import { createTroubleWatch } from '../../../src/console/events/trouble-watch.ts'
import { createUnstored } from '../../../src/console/events/unstored.ts'
import type { ClockDoubt } from '../../../src/core/domain/admin/clock-record.ts'
import type { OperatorEvent } from '../../../src/core/domain/delivery/operator-event.ts'
import { StorageFailure } from '../../../src/core/domain/errors.ts'
import type { CarrierState } from '../../../src/core/domain/polling/carrier-answer.ts'
import { CARRIER } from '../../support/network/carrier-state.ts'
import { DAY_MS, NOON } from '../../support/runner/constants.ts'
import { createLogBook } from '../../support/runner/log-book.ts'

const MB = 1024 * 1024

const NO_WRITES = {
  recordOperatorEvent: async () => undefined,
  endBackup: async () => false,
  saveRefused: async () => undefined,
  addTallies: async () => undefined,
  noteDown: async () => undefined,
}

const well: CarrierState = { ...CARRIER, lastAnswerAtMs: NOON }
const failing: CarrierState = {
  ...well,
  breaker: { state: 'open', failures: 5, restMs: 1000, sinceMs: NOON - 60_000 },
  lastFailure: { reason: 'timeout', atMs: NOON },
}

function openWatch(troubles = new Set<string>(), told: string[] = []) {
  let ms = 0
  const seen = {
    doubt: null as ClockDoubt | null,
    carrier: well,
    freeBytes: 10_000 * MB,
    untilMs: NOON + 100 * DAY_MS,
    isPoller: true,
    isFull: false,
    refusedFromMs: null as number | null,
  }
  const ends: object[] = []
  const begins: object[] = []
  const counted: string[] = []
  const beganMs = new Map<string, number>()
  const note = (event: { readonly event: OperatorEvent['event'] }, change: boolean) => {
    if (change) told.push(event.event)
    if (change && event.event === 'disk_usable') ends.push(event)
    if (change && event.event === 'carrier_failing') begins.push(event)
    return change
  }
  let wakes = 0
  const wake = () => void wakes++
  const clock = { now: () => NOON + ms, monotonic: () => ms }
  const { log } = createLogBook()
  const unstored = createUnstored({
    write: {
      ...NO_WRITES,
      async beginTrouble({ subject, event, nowMs }) {
        if (seen.isFull) throw new StorageFailure('the store is full')
        const isNew = !troubles.has(subject)
        if (isNew) beganMs.set(event.event, nowMs - NOON)
        troubles.add(subject)
        return note(event, isNew)
      },
    },
    file: null,
    clock,
    log,
    wake,
  })
  const watch = createTroubleWatch(
    {
      unstored,
      write: {
        async endTrouble({ subject, event }) {
          if (seen.isFull) throw new StorageFailure('the store is full')
          return note(event, troubles.delete(subject))
        },
        lookAtClock: async () => seen.doubt,
      },
      otherClocks: () => ({ carrierAheadMs: null, machineAheadMs: null }),
      carrier: () => seen.carrier,
      freeBytes: () => seen.freeBytes,
      refused: {
        async troubleBegins(afterMs) {
          counted.push(`begins after ${afterMs - NOON}`)
          return seen.refusedFromMs ?? NOON + ms
        },
        async save() {
          counted.push('saved')
        },
      },
      certificates: () => [{ listener: 'public', untilMs: seen.untilMs }],
      isPoller: () => seen.isPoller,
      clock,
      log,
      wake,
    },
    { freeBytesMin: 256 * MB, replica: 'one/1' },
  )
  return {
    seen,
    told,
    ends,
    begins,
    beganMs,
    counted,
    troubles,
    look: async () => {
      await watch()
      await unstored.retry()
    },
    wakes: () => wakes,
    pass: (byMs: number) => {
      ms += byMs
    },
  }
}

test('refused credentials are reported once, and again if the carrier has accepted them since', async () => {
  const { seen, told, look, wakes } = openWatch()
  await look()
  seen.carrier = { ...well, credentials: 'refused' }
  // An event that could not be saved does not count as reported.
  seen.isFull = true
  await look()
  expect([told, wakes()]).toEqual([[], 0])
  seen.isFull = false
  for (let times = 0; times < 3; times++) await look()
  expect([told, wakes()]).toEqual([['credentials_refused'], 1])
  seen.carrier = { ...well, credentials: 'unknown' }
  await look()
  seen.carrier = well
  for (let times = 0; times < 3; times++) await look()
  seen.carrier = { ...well, credentials: 'refused' }
  await look()
  expect(told).toEqual(['credentials_refused', 'credentials_accepted', 'credentials_refused'])
})

test('a corrected password that gets a token ends the refusal, even if the carrier then fails', async () => {
  const { seen, told, look } = openWatch()
  seen.carrier = { ...well, credentials: 'refused' }
  await look()
  seen.carrier = { ...well, credentials: 'obtained', lastFailure: { reason: 'rate_limited', atMs: NOON + 1000 } }
  await look()
  expect(told).toEqual(['credentials_refused', 'credentials_accepted'])
})

test('a failing carrier is reported at once, and its recovery after a while', async () => {
  const { seen, told, begins, look, pass } = openWatch()
  seen.carrier = failing
  for (let times = 0; times < 3; times++) await look()
  expect(told).toEqual(['carrier_failing'])
  expect(begins).toEqual([{ event: 'carrier_failing', reason: 'timeout', status: null, since: new Date(NOON - 60_000).toISOString() }])
  for (let flap = 0; flap < 5; flap++) {
    seen.carrier = well
    pass(9000)
    await look()
    seen.carrier = failing
    await look()
  }
  expect(told).toEqual(['carrier_failing'])
  seen.carrier = well
  pass(10_000)
  for (let times = 0; times < 3; times++) await look()
  expect(told).toEqual(['carrier_failing', 'carrier_recovered'])
})

test('a carrier whose certificate has expired is told so, not called out of reach', async () => {
  const { seen, begins, look } = openWatch()
  seen.carrier = { ...failing, lastFailure: { reason: 'network', tls: 'certificate_expired', atMs: NOON } }
  await look()
  expect(begins).toMatchObject([{ event: 'carrier_failing', reason: 'certificate_expired' }])
})

test('a replica that takes over polling reports nothing until the carrier has answered', async () => {
  const { troubles, told, seen, look } = openWatch()
  seen.carrier = failing
  await look()
  const next = openWatch(troubles, told)
  next.seen.isPoller = false
  await next.look()
  seen.isPoller = false
  next.seen.isPoller = true
  next.pass(60_000)
  await next.look()
  expect(told).toEqual(['carrier_failing'])
  next.seen.carrier = { ...well, lastAnswerAtMs: NOON + 60_000 }
  await next.look()
  await look()
  expect(told).toEqual(['carrier_failing', 'carrier_recovered'])
})

test('a relay that restarts reports nothing twice', async () => {
  const { troubles, told, seen, look } = openWatch()
  seen.carrier = { ...failing, credentials: 'refused' }
  seen.freeBytes = 300 * MB
  await look()
  const again = openWatch(troubles, told)
  Object.assign(again.seen, seen)
  await again.look()
  expect(told).toEqual(['carrier_failing', 'credentials_refused', 'disk_low'])
})

test('a disk is reported as low below twice the limit, and as no longer low a little above that', async () => {
  const { seen, told, look } = openWatch()
  for (const [free, count] of [
    [520, 0],
    [511, 1],
    [600, 1],
    [511, 1],
    [640, 2],
    [600, 2],
  ] as const) {
    seen.freeBytes = free * MB
    await look()
    expect([free, told.length]).toEqual([free, count])
  }
  expect(told).toEqual(['disk_low', 'disk_recovered'])
})

test('a disk is reported as full below the limit, and as no longer full a little above that', async () => {
  const { seen, told, look } = openWatch()
  for (const [free, events] of [
    [300, ['disk_low']],
    [255, ['disk_full']],
    [260, []],
    [255, []],
    [290, ['disk_usable']],
    [200, ['disk_full']],
    [700, ['disk_usable', 'disk_recovered']],
    [100, ['disk_full', 'disk_low']],
  ] as const) {
    told.length = 0
    seen.freeBytes = free * MB
    await look()
    expect([free, told]).toEqual([free, events])
  }
})

test('a full disk is told as from the first push that was refused because of it', async () => {
  const { seen, beganMs, look, pass } = openWatch()
  await look()
  pass(60_000)
  Object.assign(seen, { freeBytes: 0, refusedFromMs: NOON + 58_700 })
  await look()
  expect(Object.fromEntries(beganMs)).toEqual({ disk_full: 58_700, disk_low: 60_000 })
})

test('disk_usable says until when pushes were refused, and is counted from the saved counts', async () => {
  const { seen, ends, counted, look, pass } = openWatch()
  const lookAt = async (free: number) => {
    pass(1000)
    seen.freeBytes = free * MB
    await look()
  }
  for (const free of [1000, 200, 200, 260]) await lookAt(free)
  expect(counted).toEqual(['begins after 0'])
  seen.isFull = true
  await lookAt(700)
  seen.isFull = false
  await lookAt(700)
  expect(ends).toEqual([{ event: 'disk_usable', freeBytes: 700 * MB, until: new Date(NOON + 4000).toISOString() }])
  expect(counted).toEqual(['begins after 0', 'saved'])
  await lookAt(200)
  await lookAt(700)
  expect([ends[1], counted.slice(2)]).toMatchObject([{ until: new Date(NOON + 8000).toISOString() }, ['begins after 4000', 'saved']])
})

test('a trouble that began and ended while nothing could be stored is told later, with its start', async () => {
  const { seen, told, beganMs, look, pass } = openWatch()
  await look()
  pass(1000)
  seen.isFull = true
  Object.assign(seen, { freeBytes: 0, carrier: { ...failing, credentials: 'refused' }, doubt: { because: 'carrier', aheadMs: DAY_MS } })
  await look()
  pass(60_000)
  await look()
  expect(told).toEqual([])
  pass(60_000)
  Object.assign(seen, { isFull: false, freeBytes: 10_000 * MB, carrier: { ...well, lastAnswerAtMs: NOON + 1 }, doubt: null })
  await look()
  pass(10_000)
  await look()
  expect([...beganMs]).toEqual(
    ['carrier_failing', 'credentials_refused', 'clock_doubted', 'disk_full', 'disk_low'].map((name) => [name, 1000]),
  )
  expect(told.toSorted()).toEqual(
    [...beganMs.keys(), 'carrier_recovered', 'credentials_accepted', 'clock_trusted', 'disk_usable', 'disk_recovered'].toSorted(),
  )
})

test('a disk that has not been measured yet is not reported', async () => {
  const { seen, told, look, troubles } = openWatch(new Set(['disk']))
  seen.freeBytes = Number.POSITIVE_INFINITY
  await look()
  expect([told, [...troubles]]).toEqual([[], ['disk']])
})

test('each certificate with less than 14 days left is reported once', async () => {
  const { seen, told, look } = openWatch()
  await look()
  seen.untilMs = NOON + 14 * DAY_MS - 1
  for (let times = 0; times < 3; times++) await look()
  seen.untilMs = NOON + 90 * DAY_MS
  await look()
  expect(told).toEqual(['certificate_expiring'])
  seen.untilMs = NOON + DAY_MS
  await look()
  expect(told).toEqual(['certificate_expiring', 'certificate_expiring'])
})

test('a doubted clock is told at once, once, and its end too', async () => {
  const { look, seen, told } = openWatch()
  await look()
  seen.doubt = { because: 'carrier', aheadMs: 300 * DAY_MS }
  await look()
  await look()
  expect(told).toEqual(['clock_doubted'])
  seen.doubt = null
  await look()
  expect(told).toEqual(['clock_doubted', 'clock_trusted'])
})
