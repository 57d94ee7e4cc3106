import { z } from 'zod'
import { type AnswerOf, IDENTIFIER, identifier, jsonAnswer, location } from '../../core/http/server/answer-schemas.ts'
import { presentCreated, presentJson } from '../../core/http/server/present.ts'
import { NO_QUERY } from '../../core/http/server/query.ts'
import { apiRoute } from '../../core/http/server/route.ts'
import type { UseCases } from '../../core/http/use-cases.ts'

const one = {
  scope: 'admin',
  params: { identifier: IDENTIFIER },
  query: NO_QUERY,
  body: null,
  example: { path: { identifier: 'AB123456789SE' } },
} as const

const watchedAs = (created: boolean) => z.strictObject({ identifier: identifier(), created: z.literal(created) })
const refreshedSchema = () => z.strictObject({ identifier: identifier(), outcome: z.enum(['recorded', 'unknown']) })

export type WatchedAnswer = AnswerOf<() => ReturnType<typeof watchedAs>>
export type RefreshedAnswer = AnswerOf<typeof refreshedSchema>

/** Orders about one parcel. */
export const PARCELS_ROUTES = [
  apiRoute({
    ...one,
    method: 'put',
    path: '/relay/parcels/:identifier/watch',
    summary: 'Watch a parcel',
    description: 'Polls it from now on; while calls to the carrier pause, when it answers again.',
    answers: () => ({
      200: jsonAnswer('The parcel is watched', watchedAs(false)),
      201: jsonAnswer('The parcel is watched, and new', watchedAs(true), location()),
    }),
    problems: ['bad_tracking_number', 'erased'],
    answer:
      ({ manageParcels }: Pick<UseCases, 'manageParcels'>) =>
      async (ctx, { by, param }) => {
        const watched = await manageParcels.watch(param('identifier'), by)
        if (watched.created) presentCreated(ctx, `/relay/parcels/${watched.identifier}`, watched)
        else presentJson(ctx, 200, watched)
      },
  }),
  apiRoute({
    ...one,
    method: 'delete',
    path: '/relay/parcels/:identifier/watch',
    summary: 'Stop watching a parcel',
    description: 'The relay does not poll it until a push names it or an application asks for it. Nothing is deleted.',
    answers: () => ({
      200: jsonAnswer('The parcel is no longer watched', z.strictObject({ identifier: identifier(), stopped: z.literal('unwatched') })),
    }),
    problems: ['bad_tracking_number', 'not_found'],
    answer:
      ({ manageParcels }: Pick<UseCases, 'manageParcels'>) =>
      async (ctx, { by, param }) =>
        presentJson(ctx, 200, await manageParcels.unwatch(param('identifier'), by)),
  }),
  apiRoute({
    ...one,
    method: 'post',
    path: '/relay/parcels/:identifier/refresh',
    summary: 'Ask the carrier about a parcel now',
    description:
      'The relay asks in every configured language. About an identifier without a parcel it asks in the first language, and adds a parcel if the carrier knows it. `unknown`: the carrier has answered that it does not know it.',
    answers: () => ({ 200: jsonAnswer('The carrier was asked', refreshedSchema()) }),
    problems: ['bad_tracking_number', 'erased', 'upstream_unavailable'],
    answer:
      ({ manageParcels }: Pick<UseCases, 'manageParcels'>) =>
      async (ctx, { by, param }) => {
        presentJson<RefreshedAnswer>(ctx, 200, await manageParcels.refresh(param('identifier'), by))
      },
  }),
]
