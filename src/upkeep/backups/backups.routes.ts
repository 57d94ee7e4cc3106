import { z } from 'zod'
import { type AnswerOf, instant, jsonAnswer, location, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { presentInstant, presentJson } from '../../core/http/server/present.ts'
import { NO_QUERY } from '../../core/http/server/query.ts'
import { apiRoute } from '../../core/http/server/route.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import { jobSchema, presentStarted } from '../jobs/jobs.routes.ts'
import type { BackupState } from './backup.rules.ts'
import type { BackupList } from './manage-backups.ts'

const BODY_BYTES_MAX = 16 * 1024

const ordered = () => z.object({ name: z.string().describe('1 to 80 letters, digits and `. _ -`.') })

const listSchema = () =>
  z.strictObject({
    directory: z.string().nullable().describe('The folder for backups; null: the config names no folder.'),
    cron: z.string().nullable().describe('When scheduled backups are made; null: none are scheduled.'),
    keep: wholeNumber().describe('How many scheduled backups are kept.'),
    last: z
      .strictObject({ name: z.string(), at: instant(), bytes: wholeNumber() })
      .nullable()
      .describe('The last backup that was made; null: none was made yet.'),
    failing: z.strictObject({ since: instant(), reason: z.string() }).nullable().describe('Null: the last backup did not fail.'),
    unreadable: z.string().nullable().describe('Why the folder cannot be read now; null: it was read.'),
    backups: z
      .array(
        z.strictObject({
          name: z.string(),
          bytes: wholeNumber(),
          madeAt: instant(),
          hasKey: z.boolean().describe('Whether a copy of the key that the relay made for its secrets lies beside the backup.'),
        }),
      )
      .describe('The backups in the folder, the newest first.'),
  })

export type BackupsAnswer = AnswerOf<typeof listSchema>

/** Backups of the store. */
export const BACKUPS_ROUTES = [
  apiRoute({
    method: 'get',
    path: '/relay/backups',
    summary: 'List the backups of the store',
    description:
      'The files in `backup.directory`, and the result of the last backup. Refused with PostgreSQL, because the server has its own tools.',
    scope: 'admin',
    params: {},
    query: NO_QUERY,
    body: null,
    answers: () => ({ 200: jsonAnswer('The backups', listSchema()) }),
    problems: ['not_backed_up'],
    example: { path: {} },
    answer:
      ({ manageBackups }: Pick<UseCases, 'manageBackups'>) =>
      async (ctx) =>
        presentJson(ctx, 200, presentBackups(await manageBackups.list())),
  }),
  apiRoute({
    method: 'post',
    path: '/relay/backups',
    summary: 'Back up the store',
    description:
      'The relay keeps running meanwhile. The copy is checked, its rows are counted, and it is moved to `backup.directory`. A key file that the relay has made is copied too.',
    scope: 'admin',
    params: {},
    query: NO_QUERY,
    body: { bytesMax: BODY_BYTES_MAX, content: { 'application/json': { schema: ordered, example: { name: 'before-upgrade' } } } },
    answers: () => ({ 202: jsonAnswer('The job that makes the backup', jobSchema(), location()) }),
    problems: ['not_backed_up', 'too_many_jobs'],
    example: { path: {} },
    answer:
      ({ manageBackups }: Pick<UseCases, 'manageBackups'>) =>
      async (ctx, { by, body }) => {
        presentStarted(ctx, await manageBackups.start(body, by), { manageBackups })
      },
  }),
]

function presentBackups({ settings, unreadable, backups, ...state }: BackupList): BackupsAnswer {
  const { directory, cron, keep } = settings
  return {
    directory,
    cron,
    keep,
    ...presentState(state),
    unreadable,
    backups: backups.map(({ madeAtMs, ...backup }) => ({ ...backup, madeAt: presentInstant(madeAtMs) })),
  }
}

function presentState({ last, failing }: BackupState) {
  return {
    last: last === null ? null : { name: last.name, at: presentInstant(last.atMs), bytes: last.bytes },
    failing: failing === null ? null : { since: presentInstant(failing.sinceMs), reason: failing.reason },
  }
}
