import { z } from 'zod'
import type { Replica } from '../../core/domain/admin/replica.ts'
import { type AnswerOf, instant, numberedId, presentInstant } from '../../core/http/server/answer-schemas.ts'
import { callRoute } from '../../core/http/server/route-shapes.ts'

const replicaSchema = () =>
  z.strictObject({
    id: numberedId().describe('A replica gets a new id at each start, and when it comes back after it was not seen for 5 s.'),
    name: z.string().describe('Host and process id.'),
    version: z.string(),
    configFingerprint: z.string().describe('Equal settings give equal fingerprints; `listen` and `log` do not count.'),
    startedAt: instant(),
    lastSeenAt: instant().describe('When it last renewed its lease, which it does every second.'),
    roles: z.array(z.string().regex(/^(poller|janitor|dispatcher\/.+)$/)).describe('Its roles: work that only one replica does at a time.'),
  })

export const REPLICAS_ROUTES = [
  callRoute('get', '/relay/replicas', {
    summary: 'The relays that share the store',
    description: 'With their roles. On SQLite there is one relay.',
    answers: { 200: ['All replicas', () => z.strictObject({ replicas: z.array(replicaSchema()) })] },
    answer: async ({ listReplicas }) => [200, { replicas: (await listReplicas()).map(present) }],
  }),
]

function present({ id, name, version, configFingerprint, startedAtMs, lastSeenAtMs, roles }: Replica): AnswerOf<typeof replicaSchema> {
  const times = { startedAt: presentInstant(startedAtMs), lastSeenAt: presentInstant(lastSeenAtMs) }
  return { id: String(id), name, version, configFingerprint, ...times, roles }
}
