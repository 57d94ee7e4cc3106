import { z } from 'zod'
import { orderMembers } from '../../console/parcels/parcels.routes.ts'
import { orderContextSchema } from '../../core/domain/history/order-context.ts'
import { type AnswerOf, IDENTIFIER, identifier, location, named } from '../../core/http/server/answer-schemas.ts'
import { callRoute, jsonBody } from '../../core/http/server/route-shapes.ts'

const savedSchema = named('SavedOrder', () =>
  z.strictObject({
    identifier: identifier(),
    ...orderMembers(),
    created: z.boolean().describe('Whether the identifier had no parcel, and is watched from now on.'),
    changed: z.boolean().describe('`false`: the same was said before, so the feed has no event.'),
  }),
)

export type SavedOrderAnswer = AnswerOf<typeof savedSchema>

const EXAMPLE = { reference: 'ORDER-1207', labels: { shop: 'north', priority: 'high' }, note: 'A gift: no invoice in the parcel.' }
/** The greatest order context, with every character written as an escape. */
const BODY_BYTES_MAX = 64 * 1024

export const ORDER_ROUTES = [
  callRoute('put', '/relay/parcels/:identifier', {
    summary: 'Say to which order a parcel belongs',
    description:
      'Replaces the reference, the labels and the note; what is left out is removed. An identifier without a parcel is watched from now on, and polled soon. A change is an `update` in the feed, and no delivery.',
    params: { identifier: IDENTIFIER },
    body: jsonBody(() => orderContextSchema, EXAMPLE, BODY_BYTES_MAX),
    answers: {
      200: ['What is said of the order of the parcel', savedSchema],
      201: ['The same of a parcel that is new, and watched', savedSchema, location],
    },
    problems: ['bad_tracking_number', 'not_found'],
    answer: async ({ manageOrders }, { by, param, body }) => {
      const saved = await manageOrders.save(param('identifier'), body, by)
      return saved.created ? [201, saved, `/relay/parcels/${saved.identifier}`] : [200, saved]
    },
  }),
]
