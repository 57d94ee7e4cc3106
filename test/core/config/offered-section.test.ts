import { expect, test } from 'vitest'
import { z } from 'zod'
import { needsRestart } from '../../../src/assembly/reloading.ts'
import { presentReference } from '../../../src/console/cli/config.command.ts'
import { redactedConfig } from '../../../src/console/cli/redacted-config.ts'
import { type Config, ConfigError, configJsonSchema, loadConfig } from '../../../src/core/config/config.ts'
import type { Section } from '../../../src/core/config/schema.ts'
import { secret } from '../../../src/core/config/secret-setting.ts'
import { repeated } from '../../../src/core/config/source.ts'
import { duration, list, section, text } from '../../../src/core/config/values.ts'
import { CANARY, fileOf, minimal } from '../../console/cli/config-cases.ts'

/** The section of a made-up wing: lamps that are lit when parcels are late. */
const LAMPS: Section = {
  name: 'lamps',
  after: 'delivery',
  schema: (context) =>
    list(
      section({
        name: text.describe('A unique name.'),
        key: secret(context).describe('What the lamp is asked with.'),
        lateAfter: duration('1m', '1h').prefault('5m').describe('When a parcel is late.'),
      }).transform(({ lateAfter, ...rest }) => ({ ...rest, lateAfterMs: lateAfter })),
      'one { name, key } a line',
    )
      .default([])
      .describe('Lamps that are lit when parcels are late.'),
  check: (values) => repeated(values, 'lamps', 'name'),
}
const NO_ENVIRONMENT = {}

const load = (text: string, sections: readonly Section[] = [LAMPS]): Config =>
  loadConfig(fileOf(`${minimal}${text}\n`), sections, NO_ENVIRONMENT)

/** Returns the problems of a config without their file and excerpt. */
function problemsOf(text: string, sections?: readonly Section[]): readonly string[] {
  try {
    load(text, sections)
  } catch (error) {
    if (error instanceof ConfigError)
      return error.problems.map((problem) => problem.split('\n', 1)[0]?.replace(/^\S+:(\d+:\d+)/, '$1') ?? '')
    throw error
  }
  return []
}

const LIT = `lamps: [{ name: red, key: ${CANARY} }]`

test('the section of a wing has its defaults, in the whole and in each setting', () => {
  expect(load('')).toHaveProperty('lamps', [])
  expect(load(LIT)).toHaveProperty('lamps.0.lateAfterMs', 300_000)
})

test('the section of a wing is validated with the rest, and all problems are listed together', () => {
  expect(problemsOf(`zone: nowhere\nlamps: [{ name: red, key: k, lateAfter: 2h, colour: x }]`)).toEqual([
    '3:7 zone: must be a time zone such as Europe/Stockholm or UTC',
    '4:41 lamps[0].lateAfter: must be a duration from 1m to 1h: a whole number and its unit (ms, s, m, h or d), such as 10s',
    '4:45 lamps[0].colour: is not a known key; the keys here are name, key, lateAfter',
  ])
})

test('what a wing checks between settings is checked, even where the schema refuses some', () => {
  expect(problemsOf('lamps: [{ name: red, key: k, lateAfter: 2h }, { name: red, key: k }]')).toEqual([
    expect.stringContaining('lamps[0].lateAfter: must be a duration'),
    expect.stringContaining('lamps[1].name: is the same as in lamps[0]: each must be unique'),
  ])
})

test('a section that no wing offers is not a known key', () => {
  expect(problemsOf(LIT, [])).toEqual([
    expect.stringMatching(/^3:1 lamps: is not a known key; the keys here are listen, store, .*, delivery, secrets,/),
  ])
  expect(problemsOf('lamp: []')).toEqual([expect.stringContaining('lamp: is not a known key; did you mean lamps?')])
})

test('the section of a wing is documented where it says, and editors know it', () => {
  const page = presentReference([LAMPS])
  expect(page.match(/^## .*$/gm)?.join(' ')).toContain('## delivery ## lamps ## secrets')
  expect(page).toContain('| `lamps[].lateAfter` | duration, 1m to 1h | `5m` | When a parcel is late. |')
  const schema = z.object({ properties: z.record(z.string(), z.unknown()) }).parse(configJsonSchema([LAMPS]))
  expect(schema.properties.lamps).toMatchObject({ type: 'array', description: 'Lamps that are lit when parcels are late.' })
})

test('the section of a wing is printed where it is documented, as it is written, with its secrets masked', () => {
  const printed = redactedConfig(load(LIT))
  expect(printed.lamps).toEqual([{ name: 'red', key: '[redacted]', lateAfter: '5m' }])
  expect(Object.keys(printed).join(' ')).toContain('delivery lamps secrets')
})

test('a change of the section of a wing needs a restart, unless the relay applies it', () => {
  expect(needsRestart(load(''), load(''))).toEqual([])
  expect(needsRestart(load(''), load(LIT))).toEqual(['lamps'])
})
