import { expect, test } from 'vitest'
import { searchFor } from '../../../src/core/domain/names-in-text.ts'
import { eraseInRecord } from '../../../src/upkeep/erasure/erasure.rules.ts'
import { type Schema, schemaAt } from '../../support/portal/api-document.ts'

const ID = 'GONE0001'
const search = searchFor(new Set([ID]))

/** Texts that hold no identifier of a parcel: names that operators chose, and words of a list that a later version may lengthen. */
const NAMES = ['endpoint.name', 'endpoints.0', 'replica', 'listener', 'backup', 'changed.0', 'needsRestart.0', 'job.kind', 'state']
const CODES = ['pushes_quarantined: reason', 'pushes_not_understood: reason', 'carrier_failing: reason', 'endpoint_failing: failure.reason']

/** Lists where a value may hold any text. */
function textsIn(schema: Schema, place: readonly string[] = []): readonly string[] {
  if (schema.$ref !== undefined) return textsIn(schemaAt(schema.$ref), place)
  const { type, format, pattern, anyOf = [], properties = {}, items, additionalProperties } = schema
  const isFree = [type].flat().includes('string') && [format, pattern, schema.enum, schema.const].every((one) => one === undefined)
  return [
    ...(isFree ? [place.join('.')] : []),
    ...anyOf.flatMap((one) => textsIn(one, place)),
    ...Object.entries(properties).flatMap(([name, one]) => textsIn(one, [...place, name])),
    ...(items === undefined ? [] : textsIn(items, [...place, '0'])),
    ...(typeof additionalProperties === 'object' ? textsIn(additionalProperties, [...place, 'any']) : []),
  ]
}

function holding([name, ...inner]: readonly string[]): unknown {
  if (name === undefined) return `about ${ID}`
  return name === '0' ? [holding(inner)] : { [name]: holding(inner) }
}

const texts = (schemaAt('#/components/schemas/OperatorEvent').anyOf ?? []).flatMap((event) => {
  const name = String(event.properties?.event?.const)
  return textsIn(event).map((place) => ({ name, place }))
})

test('every text of an operator event that may name a parcel is erased, and the others are known', () => {
  const isErased = ({ name, place }: (typeof texts)[number]) =>
    eraseInRecord(name, JSON.stringify(holding(place.split('.'))), search) !== null
  const [erased, left] = [texts.filter(isErased), texts.filter((one) => !isErased(one))]
  expect(erased.map(({ name, place }) => `${name}: ${place}`)).toEqual([
    'endpoint_failing: failure.answer',
    'reloaded: problems.0',
    'reload_failed: problems.0',
    'job_ended: failure',
    'backup_failed: reason',
  ])
  expect(
    left.map(({ name, place }) => `${name}: ${place}`).filter((one) => !CODES.includes(one) && !NAMES.includes(one.replace(/.*: /, ''))),
  ).toEqual([])
})
