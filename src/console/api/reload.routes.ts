import { z } from 'zod'
import { tokenRotationSchema } from '../../core/domain/admin/token-keys.ts'
import { type AnswerOf, instant, named, presentInstant } from '../../core/http/server/answer-schemas.ts'
import { callRoute, jsonBody } from '../../core/http/server/route-shapes.ts'

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

const resealSchema = () =>
  z.strictObject({
    key: z.string().describe('A digest of the at-rest key that encrypts now.'),
    resealed: z.int().describe('How many secrets were encrypted with another at-rest key before.'),
    upToDate: z.int().describe('How many secrets were encrypted with this at-rest key already.'),
    unreadable: z.array(z.string()).describe('Secrets that no at-rest key opens. Replace each of them, or restore the at-rest key.'),
  })

const rotatedSchema = () =>
  z.strictObject({ validUntil: instant().nullable().describe('When the last token of the old key expires; null: all have ended.') })

export type ResealAnswer = AnswerOf<typeof resealSchema>
export type RotatedAnswer = AnswerOf<typeof rotatedSchema>

/** Replaces the relay's own keys: the at-rest keys and the key that signs tokens. */
export const SECRETS_ROUTES = [
  callRoute('post', '/relay/secrets/reseal', {
    summary: 'Encrypt all secrets with the first at-rest key',
    description:
      'The store holds secrets, such as the keys of endpoints, only in encrypted form. Afterwards the first entry of `secrets.atRestKeys` is enough, unless something is unreadable. May be repeated.',
    answers: { 200: ['What was encrypted', resealSchema] },
    problems: ['not_resealable'],
    answer: async ({ manageSecrets }, { by }) => [200, await manageSecrets.reseal(by)],
  }),
  callRoute('post', '/relay/secrets/rotate-tokens', {
    summary: 'Replace the key that signs tokens',
    description:
      'Tokens that apps have stay valid until they expire. With the body `{ "at": "now" }` they end now. Apps and people must then log in again; other replicas notice it within 10 s.',
    body: { optional: true, ...jsonBody(() => tokenRotationSchema, {}, 1024) },
    answers: { 200: ['The key is replaced', rotatedSchema] },
    answer: async ({ manageSecrets }, { by, body }) => {
      const { validUntilMs } = await manageSecrets.rotateTokens(body, by)
      return [200, { validUntil: presentInstant(validUntilMs) }]
    },
  }),
]
