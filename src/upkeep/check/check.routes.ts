import { z } from 'zod'
import { type AnswerOf, jsonAnswer, named } from '../../core/http/server/answer-schemas.ts'
import { presentJson } from '../../core/http/server/present.ts'
import { NO_QUERY } from '../../core/http/server/query.ts'
import { apiRoute } from '../../core/http/server/route.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
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
  apiRoute({
    method: 'get',
    path: '/relay/check',
    summary: 'Check whether the deployment works',
    description:
      'Gives a line for each result, with the reason if something does not work: config, keys, store, disk, files, certificates, the login at the carrier and a question to it (two calls of the budget), the clock, a signed push to itself (counted as `check`, not kept) and a connection to each endpoint (nothing is sent). Within 5 s it gives the same result again.',
    scope: 'admin',
    params: {},
    query: NO_QUERY,
    body: null,
    answers: () => ({ 200: jsonAnswer('The lines', checkSchema()) }),
    problems: [],
    example: { path: {} },
    answer:
      ({ check }: Pick<UseCases, 'check'>) =>
      async (ctx) => {
        const lines = await check()
        presentJson<CheckAnswer>(ctx, 200, { ok: !isRed(lines), lines })
      },
  }),
]
