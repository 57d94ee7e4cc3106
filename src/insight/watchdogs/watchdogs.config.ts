import type { z } from 'zod'
import type { DeepReadonly } from '../../core/config/config.ts'
import type { Section } from '../../core/config/schema.ts'
import { repeated } from '../../core/config/source.ts'
import { duration, flag, list, section, text, timeOfDay } from '../../core/config/values.ts'
import { FILTERS } from '../../core/domain/delivery/endpoint-settings.ts'

declare module '../../core/config/config.ts' {
  interface Settings {
    readonly watchdogs?: DeepReadonly<z.output<ReturnType<typeof watchdogs>>>
  }
}

/** How many rules there may be. Each is asked about every push. */
const RULES_MAX = 50
const VALUES_MAX = 100

const values = (example: string, words: string) =>
  list(text.max(200, { error: 'must have at most 200 characters' }), example)
    .max(VALUES_MAX, { error: `must hold at most ${VALUES_MAX} values` })
    .optional()
    .transform((given) => given ?? null)
    .describe(words)

function when() {
  const [labelForm, labelError] = FILTERS.label.form
  return section(
    {
      status: values('[Ingested]', 'Entries with one of these statuses.'),
      detailedStatus: values('[ArrivedT2]', 'Entries with one of these detailed statuses.'),
      distributionType: values('[Mailbox]', 'Only parcels with one of these distribution types.'),
      label: list(text.regex(labelForm, labelError), '[priority=high]')
        .max(VALUES_MAX, { error: `must hold at most ${VALUES_MAX} values` })
        .optional()
        .transform((given) => given ?? null)
        .describe('Only parcels whose order has one of these labels: NAME, or NAME=VALUE.'),
    },
    'such as { status: [Ingested] }',
  ).superRefine(({ status, detailedStatus }, issues) => {
    if (status === null && detailedStatus === null)
      issues.addIssue({ code: 'custom', message: 'must name a status or a detailedStatus, such as { status: [Ingested] }' })
  })
}

function rule() {
  return section(
    {
      name: text
        .regex(/^[a-z0-9-]{1,40}$/, { error: 'must have 1 to 40 characters of a to z, 0 to 9 and -' })
        .describe('A unique name, which the feed, endpoints and pages show.'),
      when: when().describe('The entries with which the watch begins. The newest of them counts.'),
      notWithin: duration('1m', '365d')
        .optional()
        .transform((given) => given ?? null)
        .describe('The parcel is stalled when nothing has ended the watch this long after the entry.'),
      notBy: timeOfDay
        .optional()
        .transform((given) => given ?? null)
        .describe(
          'The parcel is stalled when nothing has ended the watch by this time of day in `zone`, on the day of the entry, or the next if it is past.',
        ),
      until: list(text, '[DeliverySucceeded]')
        .max(VALUES_MAX, { error: `must hold at most ${VALUES_MAX} values` })
        .optional()
        .transform((given) => given ?? null)
        .describe('The statuses that end the watch. Default: any later entry. []: nothing ends it.'),
      past: flag.default(false).describe('true: a new rule also tells what was stalled before its first load.'),
    },
    'at least name: and when:',
  )
    .superRefine(({ notWithin, notBy }, issues) => {
      if (notWithin !== null && notBy !== null)
        issues.addIssue({ code: 'custom', path: ['notBy'], message: 'cannot stand beside notWithin: choose one, or make two rules' })
    })
    .transform(({ notWithin, ...rest }) => ({ ...rest, notWithinMs: notWithin }))
}

/** Creates the schema of the rules that watch over parcels. Without `notWithin` and `notBy`, a parcel is stalled at once. */
export function watchdogs() {
  return list(rule(), 'one { name, when, notWithin } a line')
    .max(RULES_MAX, { error: `must hold at most ${RULES_MAX} rules` })
    .default([])
    .describe(
      'Rules that watch over parcels and tell which are stalled. Without notWithin and notBy, a parcel is stalled as soon as it has the entry.',
    )
}

export const WATCHDOGS_SECTION: Section = {
  name: 'watchdogs',
  after: 'delivery',
  schema: watchdogs,
  check: (values) => repeated(values, 'watchdogs', 'name'),
}
