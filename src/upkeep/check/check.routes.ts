import { z } from 'zod'
import { type AnswerOf, named } from '../../core/http/server/answer-schemas.ts'
import { callRoute } from '../../core/http/server/route-shapes.ts'
import { CHECK_NAMES, isRed } from './check.rules.ts'

const checkSchema = named('Check', () =>
  z.strictObject({
    ok: z.boolean().describe('Whether no line has failed.'),
    lines: z.array(
      z.strictObject({
        name: z.enum(CHECK_NAMES),
        subject: z.string().nullable().describe('What was checked, such as the name of an endpoint; null: there is only one such thing.'),
        state: z.enum(['ok', 'warning', 'failed', 'skipped']),
        message: z.string().describe('What was found, and what to do if something is wrong.'),
      }),
    ),
  }),
)

export type CheckAnswer = AnswerOf<typeof checkSchema>

export const CHECK_ROUTES = [
  callRoute('get', '/relay/check', {
    summary: 'Check whether the deployment works',
    description:
      'Gives a line for each result, with the reason if something does not work: config, keys, store, disk, files, certificates, the login at the carrier and a question to it (two calls of the budget), the clock, a signed push to itself (counted as `check`, not kept) and a connection to each endpoint (nothing is sent). Within 5 s it gives the same result again; after ten checks in ten minutes, within a minute.',
    answers: { 200: ['The lines', checkSchema] },
    answer: async ({ check }) => {
      const lines = await check()
      return [200, { ok: !isRed(lines), lines }]
    },
  }),
]
