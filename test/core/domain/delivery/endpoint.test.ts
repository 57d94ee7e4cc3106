import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FILTERS } from '../../../../src/core/domain/delivery/endpoint-settings.ts'
import { type EndpointFilters, noFilters, type RelayedEvent, takes } from '../../../../src/core/domain/delivery/endpoint-state.ts'

const event: RelayedEvent = {
  status: 'TerminalArrived',
  detailedStatus: 'ArrivedT2',
  distributionType: 'Mailbox',
  displayToConsumer: true,
  labels: ['priority', 'priority=high'],
}

function wants(filters: Partial<EndpointFilters>, changed: Partial<RelayedEvent> = {}): boolean {
  return takes({ events: ['entry'], filters: { ...noFilters, ...filters } }, 'entry', { ...event, ...changed })
}

describe('the events that an endpoint wants', () => {
  test('without filters an endpoint gets every event, even of an unknown status', () => {
    const names = fc.record({
      status: fc.string(),
      detailedStatus: fc.string(),
      distributionType: fc.string(),
      displayToConsumer: fc.boolean(),
    })
    fc.assert(fc.property(names, (changed) => wants({}, changed)))
  })

  test.each([
    [{ status: ['DeliverySucceeded', 'TerminalArrived'] }, true],
    [{ status: ['DeliverySucceeded'] }, false],
    [{ status: ['terminalarrived'] }, false],
    [{ status: [] }, false],
    [{ detailedStatus: ['ArrivedT2'] }, true],
    [{ detailedStatus: ['ArrivedT1'] }, false],
    [{ distributionType: ['Mailbox'] }, true],
    [{ distributionType: ['Box'] }, false],
    [{ label: ['priority=high'] }, true],
    [{ label: ['priority=low', 'priority'] }, true],
    [{ label: ['priority=low', 'shop'] }, false],
    [{ label: [] }, false],
    [{ displayToConsumer: true }, true],
    [{ displayToConsumer: false }, false],
  ] as const)('the filter %j lets the event through: %j', (filters, expected) => {
    expect(wants(filters)).toBe(expected)
  })

  test.each(Object.entries(FILTERS))('the filter %s is compared: no event has a value that none can have', (name, { kind }) => {
    expect(wants({ [name]: kind === 'either' ? !event.displayToConsumer : ['none has this'] })).toBe(false)
  })

  test('an event must pass every filter, not just one', () => {
    expect(wants({ status: ['TerminalArrived'], detailedStatus: ['ArrivedT1'] })).toBe(false)
    expect(wants({ status: ['TerminalArrived'], detailedStatus: ['ArrivedT2'], displayToConsumer: true })).toBe(true)
  })

  test('an unknown distribution type passes no filter for a distribution type', () => {
    expect(wants({ distributionType: ['Mailbox'] }, { distributionType: '' })).toBe(false)
  })
})
