import { z } from 'zod'
import { type AnswerOf, instant, location, presentInstant, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { callRoute, jsonBody } from '../../core/http/server/route-shapes.ts'
import { jobSchema, startedJob } from '../jobs/jobs.routes.ts'
import type { BackupState } from './backup.rules.ts'
import type { BackupList } from './manage-backups.ts'

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
  callRoute('get', '/relay/backups', {
    summary: 'List the backups of the store',
    description:
      'The files in `backup.directory`, and the result of the last backup. Refused with PostgreSQL, because the server has its own tools.',
    answers: { 200: ['The backups', listSchema] },
    problems: ['not_backed_up'],
    answer: async ({ manageBackups }) => [200, presentBackups(await manageBackups.list())],
  }),
  callRoute('post', '/relay/backups', {
    summary: 'Back up the store',
    description:
      'The relay keeps running meanwhile. The copy is checked, its rows are counted, and it is moved to `backup.directory`. A key file that the relay has made is copied too.',
    body: jsonBody(ordered, { name: 'before-upgrade' }),
    answers: { 202: ['The job that makes the backup', jobSchema, location] },
    problems: ['not_backed_up', 'too_many_jobs'],
    answer: async (ports, { by, body }) => startedJob(await ports.manageBackups.start(body, by), ports),
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
