import { testSchema } from '../../core/http/delivery/endpoint-schemas.ts'
import { presentTest } from '../../core/http/delivery/present-test.ts'
import type { AnswerOf } from '../../core/http/server/answer-schemas.ts'
import { callRoute } from '../../core/http/server/route-shapes.ts'

export type TestAnswer = AnswerOf<typeof testSchema>

/** The address that operator events are posted to. */
export const OPERATOR_ROUTES = [
  callRoute('post', '/relay/operator/test', {
    summary: 'Send a test event to the operator',
    description:
      'Makes one attempt now to send it to `operator.url`, in the format `operator.format`. The event is not kept. An address that was disabled and accepts the event is enabled.',
    answers: { 200: ['What the address answered', testSchema] },
    problems: ['not_found'],
    answer: async ({ testOperator }, { by }) => [200, presentTest(await testOperator(by))],
  }),
  callRoute('post', '/relay/operator/enable', {
    summary: 'Enable the address of operator events',
    description: 'Sends again to `operator.url` what waits, after its 410 or 120 h of failures has disabled it.',
    answers: { 204: ['It is enabled'] },
    problems: ['not_found'],
    answer: async ({ enableOperator }, { by }) => {
      await enableOperator(by)
      return [204]
    },
  }),
]
