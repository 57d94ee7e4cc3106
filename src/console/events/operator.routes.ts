import { testSchema } from '../../core/http/delivery/endpoint-schemas.ts'
import { presentTest } from '../../core/http/delivery/present-test.ts'
import { type AnswerOf, jsonAnswer } from '../../core/http/server/answer-schemas.ts'
import { presentJson } from '../../core/http/server/present.ts'
import { NO_QUERY } from '../../core/http/server/query.ts'
import { apiRoute } from '../../core/http/server/route.ts'
import type { UseCases } from '../../core/http/use-cases.ts'

export type TestAnswer = AnswerOf<typeof testSchema>

/** The address that operator events are posted to. */
export const OPERATOR_ROUTES = [
  apiRoute({
    method: 'post',
    path: '/relay/operator/test',
    summary: 'Send a test event to the operator',
    description:
      'Makes one attempt now to send it to `operator.url`, in the format `operator.format`. The event is not kept. An address that was disabled and accepts the event is enabled.',
    scope: 'admin',
    params: {},
    query: NO_QUERY,
    body: null,
    answers: () => ({ 200: jsonAnswer('What the address answered', testSchema()) }),
    problems: ['not_found'],
    example: { path: {} },
    answer:
      ({ testOperator }: Pick<UseCases, 'testOperator' | 'enableOperator'>) =>
      async (ctx, { by }) =>
        presentJson(ctx, 200, presentTest(await testOperator(by))),
  }),
  apiRoute({
    method: 'post',
    path: '/relay/operator/enable',
    summary: 'Enable the address of operator events',
    description: 'Sends again to `operator.url` what waits, after its 410 or 120 h of failures has disabled it.',
    scope: 'admin',
    params: {},
    query: NO_QUERY,
    body: null,
    answers: () => ({ 204: { description: 'It is enabled' } }),
    problems: ['not_found'],
    example: { path: {} },
    answer:
      ({ enableOperator }: Pick<UseCases, 'testOperator' | 'enableOperator'>) =>
      async (ctx, { by }) => {
        await enableOperator(by)
        ctx.status = 204
      },
  }),
]
