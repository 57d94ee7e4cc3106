import { z } from 'zod'
import { type AnswerOf, named } from '../../core/http/server/answer-schemas.ts'
import { callRoute } from '../../core/http/server/route-shapes.ts'

const settings = () => z.array(z.string())

const reloadedSchema = named('Reloaded', () =>
  z.strictObject({
    replica: z.string().describe('The replica that has reloaded its config.'),
    changed: settings().describe('Settings that have changed and are in effect, by their names in the file.'),
    needsRestart: settings().describe('Settings that have changed since the start and need a restart.'),
    problems: z.array(z.string()).describe('Files that could not be used. Their previous content stays in use.'),
  }),
)

export type ReloadAnswer = AnswerOf<typeof reloadedSchema>

/** The reload of the config. */
export const RELOAD_ROUTES = [
  callRoute('post', '/relay/reload', {
    summary: 'Reload the config',
    description:
      'Reads the config file again, and the files that it names, as SIGHUP does. Each call reaches one replica, so call every replica. If the file has mistakes, nothing changes.',
    answers: { 200: ['The config is reloaded', reloadedSchema] },
    problems: ['not_reloadable'],
    answer: async ({ reloadConfig, replica }, { by }) => [200, { replica, ...(await reloadConfig(by)) }],
  }),
]
