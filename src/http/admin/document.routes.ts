import { z } from 'zod'
import { jsonAnswer } from '../server/answer-schemas.ts'
import { ANY_QUERY } from '../server/query.ts'
import { ownRoute } from '../server/route.ts'

export interface DocumentRoutePorts {
  /** Reads the document of this version of the relay. */
  readonly readDocument: () => Promise<Uint8Array>
}

/** The API as a document. */
export const DOCUMENT_ROUTES = [
  ownRoute({
    method: 'get',
    path: '/openapi.json',
    listener: 'internal',
    summary: 'This document',
    description: 'OpenAPI 3.1, made from the table of routes.',
    scope: null,
    params: {},
    query: ANY_QUERY,
    body: null,
    answers: () => ({ 200: jsonAnswer('The document', z.looseObject({ openapi: z.literal('3.1.0') })) }),
    problems: [],
    example: { path: {} },
    handle:
      ({ readDocument }: DocumentRoutePorts) =>
      async (ctx) => {
        ctx.body = Buffer.from(await readDocument())
        ctx.set('Content-Type', 'application/json')
        ctx.set('Cache-Control', 'no-store')
      },
  }),
]
