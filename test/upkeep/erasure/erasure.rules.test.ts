import { describe, expect, test } from 'vitest'
import { ERASED_WORD } from '../../../src/core/domain/history/erased.ts'
import { searchFor } from '../../../src/core/domain/names-in-text.ts'
import { eraseInRecord, eraseInText } from '../../../src/upkeep/erasure/erasure.rules.ts'

const search = searchFor(new Set(['GONE0001', '2026', 'TRUE', 'NULL', 'ADMIN', 'TRACKINGID']))

test('identifiers are taken out of a text as whole words or in groups, and longer words stay', () => {
  expect(eraseInText('gone0001, GONE00012, GONE-00-01', search)?.text).toBe(`${ERASED_WORD}, GONE00012, ${ERASED_WORD}`)
  expect(eraseInText('nothing', search)).toBeNull()
})

test('a longer word that may name an identifier stays and is told', () => {
  expect(eraseInText('what is XGONE0001?', search)).toEqual({ text: 'what is XGONE0001?', names: [], isUnclear: true })
  expect(eraseInText('GONE0001 or XGONE00017', search)).toMatchObject({ names: ['GONE0001'], isUnclear: true })
  expect(eraseInText('id84GONE0001', search)).toMatchObject({ names: ['GONE0001'], isUnclear: false })
  expect(eraseInRecord('reload_failed', '{"problems":["XGONE0001"]}', search)).toMatchObject({ names: [], isUnclear: true })
})

describe('text inside stored JSON', () => {
  test('only members that hold identifiers or free text are changed', () => {
    const replayed = '{"fromSequence":2026,"fromMs":null,"parcel":"2026","missing":true,"states":["admin"],"of":"true","count":2026}'
    expect(eraseInRecord('deliveries.replayed', replayed, search)).toMatchObject({
      text: replayed.replace('"parcel":"2026"', `"parcel":"${ERASED_WORD}"`),
    })
    const failing = {
      endpoint: { id: '2026', name: 'admin' },
      since: '2026-01-01T00:00:00.000Z',
      failure: { status: 500, reason: null, answer: 'no true 2026' },
    }
    const erased = eraseInRecord('endpoint_failing', JSON.stringify(failing), search)
    expect(erased).toMatchObject({
      text: JSON.stringify({ ...failing, failure: { ...failing.failure, answer: `no ${ERASED_WORD} ${ERASED_WORD}` } }),
    })
  })

  test('an enumeration, an instant, a name and a record of another version stay', () => {
    for (const [record, detail] of [
      ['pushes_quarantined', { reason: 'tracking_id', count: 2026, since: '2026-01-01T00:00:00.000Z' }],
      ['endpoint.changed', { endpoint: 'admin', change: { url: 'https://hooks.example/2026/true' } }],
      ['of a later version', { parcel: '2026' }],
      ['constructor', { parcel: '2026' }],
    ] as const)
      expect(eraseInRecord(record, JSON.stringify(detail), search)).toBeNull()
  })

  test('B7: numbers that no float holds, and names of members, stay as they were written', () => {
    const json = '{"problems":["GONE0001",12345678901234567890,{"GONE0001":1.0}],"big":1e400,"__proto__":-0}'
    const text = `{"problems":["${ERASED_WORD}",12345678901234567890,{"${ERASED_WORD}":1.0}],"big":1e400,"__proto__":-0}`
    expect(eraseInRecord('reload_failed', json, search)).toMatchObject({ text })
  })

  test('a damaged text is told, and not changed', () => {
    for (const json of ['{"dryRun":(erased)}', '', '[]', '7']) expect(eraseInRecord('job_ended', json, search)).toBe('unreadable')
  })
})
