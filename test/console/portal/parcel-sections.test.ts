import { expect, test } from 'vitest'
import { charactersOf } from '../../../src/console/portal/html.ts'
import { type ParcelSection, showSections } from '../../../src/console/portal/parcels/parcel.pages.ts'
import { NO_CONTEXT } from '../../../src/core/domain/history/order-context.ts'
import { newParcel } from '../../../src/core/domain/history/parcel-state.ts'
import { visitAt } from '../../support/portal/visit.ts'
import { NOON } from '../../support/runner/constants.ts'

const PARCEL = {
  state: newParcel(7, NOON),
  identifiers: [],
  order: NO_CONTEXT,
  entries: [],
  distributionType: '',
  nextPollBecause: null,
  waitsForCarrier: false,
}

const sectionAt = (position: number, part: string | null): ParcelSection => ({
  id: `at${position}`,
  title: '<Title>',
  position,
  show: async () => part,
})

test('sections stand by their positions before and after the history, and one without content does not show', async () => {
  const given = [sectionAt(5, 'last'), sectionAt(-1, 'second'), sectionAt(0, 'third'), sectionAt(-9, '<first>'), sectionAt(-5, null)]
  const { before, after } = await showSections(given, visitAt(''), PARCEL)
  expect([before, after].map((sections) => sections.map((section) => /at-?\d/.exec(charactersOf(section))?.[0]))).toEqual([
    ['at-9', 'at-1'],
    ['at0', 'at5'],
  ])
  expect(before.map(charactersOf)[0]).toBe('<section aria-labelledby="at-9"><h2 id="at-9">&lt;Title&gt;</h2>&lt;first&gt;</section>')
})
