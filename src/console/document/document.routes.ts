import type { Context } from 'koa'
import { z } from 'zod'
import { jsonAnswer } from '../../core/http/server/answer-schemas.ts'
import { OPEN, ownRoute } from '../../core/http/server/route.ts'

/** Sends a page or a picture of the manual; `''` is the page of the API. */
export type ShowDocs = (ctx: Context, name: string) => Promise<void>

export interface DocumentRoutePorts {
  readonly showDocs: ShowDocs
  /** Reads the API document of this version of the relay. */
  readonly readDocument: () => Promise<Uint8Array>
}

/** The API and the manual, for people and programs. */
export const DOCUMENT_ROUTES = [
  ownRoute({
    ...OPEN,
    method: 'get',
    path: '/openapi.json',
    summary: 'This document',
    description: 'OpenAPI 3.1, made from the table of routes.',
    answers: () => ({ 200: jsonAnswer('The document', z.looseObject({ openapi: z.literal('3.1.0') })) }),
    handle:
      ({ readDocument }: DocumentRoutePorts) =>
      async (ctx) => {
        ctx.body = Buffer.from(await readDocument())
        ctx.set('Content-Type', 'application/json')
        ctx.set('Cache-Control', 'no-store')
      },
  }),
  ownRoute({
    ...OPEN,
    method: 'get',
    path: '/docs',
    summary: 'The API, for people',
    description: 'Every address with what it takes and answers, and a `curl` line.',
    answers: () => ({ 200: { description: 'A page', content: { 'text/html': z.string() } } }),
    handle:
      ({ showDocs }: DocumentRoutePorts) =>
      async (ctx) =>
        await showDocs(ctx, ''),
  }),
  ownRoute({
    ...OPEN,
    method: 'get',
    path: '/docs/:page',
    summary: 'A page of the manual',
    params: { page: { description: 'The name of the page, such as `operating`.', schema: () => z.string() } },
    answers: () => ({
      200: { description: 'The page, or one of its pictures', content: { 'text/html': z.string(), 'image/svg+xml': z.string() } },
    }),
    problems: ['not_found'],
    example: { path: { page: 'operating' } },
    handle:
      ({ showDocs }: DocumentRoutePorts) =>
      async (ctx) =>
        await showDocs(ctx, ctx.params.page ?? ''),
  }),
]
