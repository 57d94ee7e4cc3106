import { expect, test } from 'vitest'
import { createLogDigest, createPushLog } from '../../../../src/core/flow/log-digest.ts'

function world() {
  const lines: (readonly [object, string])[] = []
  let atMs = 0
  const digest = createLogDigest({
    log: { warn: (fields, message) => void lines.push([fields, message]) },
    clock: { now: () => 1_700_000_000_000 + atMs, monotonic: () => atMs },
  })
  const pass = (ms: number) => {
    atMs += ms
  }
  const { add, storedAgain } = createPushLog(digest)
  return { lines, digest, log: add, storedAgain, pass }
}

test('the first refused push is logged at once, and later ones once a minute with their count', () => {
  const { lines, log, digest, pass } = world()
  log('signature_invalid', 1)
  for (let nth = 0; nth < 500; nth++) log('signature_invalid', 2)
  pass(59_000)
  digest.flush()
  expect(lines).toEqual([[{ count: 1 }, expect.stringContaining('the signature does not match')]])
  pass(1000)
  digest.flush()
  expect(lines.slice(1)).toEqual([[{ count: 1000, seconds: 60 }, expect.stringContaining('the signature does not match')]])
})

test('after a quiet minute, the next refused push is logged at once again', () => {
  const { lines, log, digest, pass } = world()
  log('quarantined', 1)
  pass(60_000)
  digest.flush()
  log('quarantined', 3)
  expect(lines.map(([fields]) => fields)).toEqual([{ count: 1 }, { count: 3 }])
})

test('counted pushes are logged before the relay ends', () => {
  const { lines, log, digest } = world()
  log('quarantined', 1)
  log('quarantined', 4)
  digest.end()
  expect(lines.map(([fields]) => fields)).toEqual([{ count: 1 }, { count: 4, seconds: 0 }])
})

test('accepted and repeated pushes are not logged', () => {
  const { lines, log } = world()
  for (const outcome of ['recorded', 'duplicate', 'toString']) log(outcome, 1)
  expect(lines).toEqual([])
})

test('log lines name the last senders of refused pushes, and why pushes were quarantined', () => {
  const { lines, log, digest, pass } = world()
  log('signature_invalid', 1, { senders: ['192.0.2.1'] })
  for (let nth = 2; nth < 9; nth++) log('signature_invalid', 1, { senders: [`192.0.2.${nth}`] })
  log('quarantined', 1, { senders: ['192.0.2.1'], reasons: ['event_time'] })
  log('quarantined', 2, { reasons: ['schema'] })
  pass(60_000)
  digest.flush()
  expect(lines.map(([fields]) => fields)).toEqual([
    { count: 1, senders: ['192.0.2.1'] },
    { count: 1, reasons: ['event_time'] },
    { count: 7, seconds: 60, senders: ['192.0.2.8', '192.0.2.7', '192.0.2.6', '192.0.2.5', '192.0.2.4'] },
    { count: 2, seconds: 60, reasons: ['schema'] },
  ])
})

test('the last count of pushes that could not be stored is logged when they can be stored again', () => {
  const { lines, log, storedAgain, digest, pass } = world()
  log('storage_unavailable', 1)
  log('storage_unavailable', 7)
  log('quarantined', 2)
  pass(17_000)
  storedAgain()
  storedAgain()
  const last = [{ count: 7, seconds: 17 }, expect.stringContaining('answered 503')]
  expect(lines.slice(2)).toEqual([last])
  pass(60_000)
  digest.flush()
  expect(lines).toHaveLength(3)
})
