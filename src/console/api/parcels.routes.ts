import { z } from 'zod'
import { type AnswerOf, IDENTIFIER, identifier, location } from '../../core/http/server/answer-schemas.ts'
import { callRoute } from '../../core/http/server/route-shapes.ts'

const one = { params: { identifier: IDENTIFIER } } as const

const watchedAs = (created: boolean) => z.strictObject({ identifier: identifier(), created: z.literal(created) })
const refreshedSchema = () => z.strictObject({ identifier: identifier(), outcome: z.enum(['recorded', 'unknown']) })

export type WatchedAnswer = AnswerOf<() => ReturnType<typeof watchedAs>>
export type RefreshedAnswer = AnswerOf<typeof refreshedSchema>

/** Orders about one parcel. */
export const PARCELS_ROUTES = [
  callRoute('put', '/relay/parcels/:identifier/watch', {
    ...one,
    summary: 'Watch a parcel',
    description: 'Polls it from now on; while calls to the carrier pause, when it answers again.',
    answers: {
      200: ['The parcel is watched', () => watchedAs(false)],
      201: ['The parcel is watched, and new', () => watchedAs(true), location],
    },
    problems: ['bad_tracking_number', 'erased'],
    answer: async ({ manageParcels }, { by, param }) => {
      const watched = await manageParcels.watch(param('identifier'), by)
      return watched.created ? [201, watched, `/relay/parcels/${watched.identifier}`] : [200, watched]
    },
  }),
  callRoute('delete', '/relay/parcels/:identifier/watch', {
    ...one,
    summary: 'Stop watching a parcel',
    description: 'The relay does not poll it until a push names it or an application asks for it. Nothing is deleted.',
    answers: {
      200: ['The parcel is no longer watched', () => z.strictObject({ identifier: identifier(), stopped: z.literal('unwatched') })],
    },
    problems: ['bad_tracking_number', 'not_found'],
    answer: async ({ manageParcels }, { by, param }) => [200, await manageParcels.unwatch(param('identifier'), by)],
  }),
  callRoute('post', '/relay/parcels/:identifier/refresh', {
    ...one,
    summary: 'Ask the carrier about a parcel now',
    description:
      'The relay asks in every configured language. About an identifier without a parcel it asks in the first language, and adds a parcel if the carrier knows it. `unknown`: the carrier has answered that it does not know it.',
    answers: { 200: ['The carrier was asked', refreshedSchema] },
    problems: ['bad_tracking_number', 'erased', 'upstream_unavailable'],
    answer: async ({ manageParcels }, { by, param }) => [200, await manageParcels.refresh(param('identifier'), by)],
  }),
]
