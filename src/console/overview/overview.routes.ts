import { z } from 'zod'
import { isDiskFull, isDiskLow } from '../../core/domain/admin/disk-room.ts'
import { conditionOf } from '../../core/domain/delivery/endpoint-state.ts'
import { carrierStanding } from '../../core/domain/polling/carrier-answer.ts'
import { pushProbation } from '../../core/http/admin/health.routes.ts'
import { type AnswerOf, instant, named, presentInstant, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { callRoute } from '../../core/http/server/route-shapes.ts'
import { runbookOf } from '../portal/docs/manual.ts'
import type { ConcernTable } from '../problems/concern-kinds.ts'
import { carrierStateWords, explainProblem, pushStateWords, STATE_TONES } from '../problems/explain-problem.ts'
import { headlineOf } from '../problems/headline.ts'
import {
  doPollsReplacePushes,
  isWarning,
  type Problem,
  problemsOf,
  pushEvidence,
  pushStanding,
  type Situation,
} from '../problems/verdict.ts'
import { plainText } from '../problems/words.ts'

const problemSchema = (kinds: readonly string[]) =>
  z.strictObject({
    kind: z.enum([
      'not_ready',
      'credentials_refused',
      'carrier_failing',
      'pushes_silent',
      'pushes_lossy',
      'silence_over',
      'pushes_refused',
      'endpoint_failing',
      'endpoint_disabled',
      'operator_unheard',
      'quarantined',
      'disk_full',
      'disk_low',
      'clock_doubted',
      'backup_failing',
      'settings_differ',
      ...kinds,
    ]),
    severity: z.enum(['problem', 'warning']).describe('A `warning` can wait until the morning.'),
    endpoint: z.string().nullable().describe('The name of the endpoint that the problem is about; null: it is about no endpoint.'),
    replica: z.string().nullable().describe('The name of the replica that has the problem; null: it is about no single replica.'),
    title: z.string(),
    since: instant().nullable().describe('Null: not known.'),
    evidence: z.array(z.string()),
    todo: z.array(z.string()).describe('What to do, step by step.'),
    runbook: z.string().describe('The address, on this listener, of the part of the manual about the problem.'),
  })

const pushesSchema = () =>
  z.strictObject({
    health: z.enum(['unknown', 'healthy', 'lossy', 'silent']),
    standing: z
      .enum(['none', 'too_early', 'healthy', 'resumed', 'lossy', 'not_understood', 'silent'])
      .describe(
        '`too_early`: nobody can know yet whether pushes are lost. `resumed`: few pushes were lost since the last trouble, but they are not trusted again yet. `not_understood`: too many of the newest went into quarantine.',
      ),
    state: stateSchema(),
    evidence: z.string().describe('What is known about pushes, in sentences.'),
    lastPushAt: instant()
      .nullable()
      .describe('When the last push with news came; null: none has. After a restore: the last one in the backup, until the next comes.'),
    probation: pushProbation(),
    refused: z
      .array(
        z.strictObject({
          cause: z
            .enum(['not_stored', 'overload', 'signature', 'path', 'size'])
            .describe(
              '`not_stored`: 503, with a good signature. `overload`: 503, before the signature was checked. `signature`: 401. `path`: 404, with a signature. `size`: 413.',
            ),
          count: wholeNumber().describe('How many requests; a push that was sent four times counts four times.'),
          from: instant(),
          until: instant(),
          occasions: wholeNumber().describe('How many times the refusals began anew between `from` and `until`: none were in the pauses.'),
          lastFrom: instant().describe('When the last of these times began.'),
          pushes: wholeNumber()
            .nullable()
            .describe(
              'At most so many different pushes these were: after a restart, and at another replica, the same push counts anew. Null: the cause is not `not_stored`.',
            ),
          again: wholeNumber().nullable().describe('At least so many of these pushes have come again and were taken.'),
        }),
      )
      .describe('Pushes that were refused in the last day, in spells without a pause of an hour, the newest first.'),
    misdirected: z
      .array(
        z.strictObject({
          path: z.string().describe('Without its query, shortened, in printable ASCII.'),
          signed: z.boolean().describe('Whether the last request had `x-service-hmac-sha256`. Nobody has checked it.'),
          count: wholeNumber(),
          firstAt: instant(),
          lastAt: instant(),
        }),
      )
      .describe(
        'Up to 10 paths other than `webhook.path` to which something was posted and answered with 404, the most recent first, seen by this replica since its start. Anybody can post such requests.',
      ),
  })

const stateSchema = () => z.strictObject({ tone: z.enum(STATE_TONES), words: z.string() }).describe('As `status` and the portal show it.')

const overviewSchema = (kinds: readonly string[]) =>
  named('Overview', () =>
    z.strictObject({
      at: instant(),
      verdict: z.enum(['works', 'new', 'problems']).describe('`new`: it works, and waits for the first push.'),
      headline: z
        .string()
        .describe(
          'The verdict in words, such as `Everything works, but the last call to the carrier failed`, or `No trouble seen; 2 checks have no evidence yet`.',
        ),
      caveats: z.array(z.string()).describe('What may become a problem, in sentences.'),
      problems: z.array(problemSchema(kinds)).describe('The worst first. Empty: everything works.'),
      pushes: pushesSchema(),
      carrier: z.strictObject({
        standing: z.enum(['refused', 'failing', 'troubled', 'answers', 'unasked']),
        state: stateSchema(),
        lastAnswerAt: instant().nullable(),
        callsToday: wholeNumber(),
        callsPerDay: wholeNumber(),
      }),
      endpoints: z.strictObject({
        delivering: wholeNumber(),
        untried: wholeNumber().describe('They have accepted nothing yet.'),
        failing: wholeNumber(),
        disabled: wholeNumber(),
      }),
      inbox: z.strictObject({ quarantined: wholeNumber() }),
      watchdogs: z
        .strictObject({
          stalled: wholeNumber().describe('How many parcels rules find stalled. This is no problem of the relay.'),
          isAll: z.boolean().describe('False: there are so many that not all were counted.'),
        })
        .nullable()
        .describe('Null: no rule watches over parcels.'),
      parcels: z.strictObject({
        known: wholeNumber(),
        watched: wholeNumber(),
        overdue: wholeNumber(),
        unknown: wholeNumber().describe('How many parcels are no longer polled, because the carrier knows none of their identifiers.'),
      }),
      disk: z
        .strictObject({ state: z.enum(['has_room', 'low', 'full']), freeBytes: wholeNumber(), storeBytes: wholeNumber() })
        .nullable()
        .describe('Null: the store is on a server, or the room could not be measured.'),
      replicas: z.array(z.string()).describe('Their names.'),
    }),
  )

export type OverviewAnswer = AnswerOf<ReturnType<typeof overviewSchema>>

/** The verdict on the relay. */
export function overviewRoute({ known }: Pick<ConcernTable, 'known'>) {
  return callRoute('get', '/relay/overview', {
    summary: 'Show whether everything works',
    description: 'The verdict and its evidence: what is wrong, since when, and who must do what.',
    answers: { 200: ['The verdict', overviewSchema([...known.keys()])] },
    answer: async ({ overview, clock }) => [200, presentOverview(await overview.read(), clock.now())],
  })
}

function presentOverview(situation: Situation, nowMs: number): OverviewAnswer {
  const { pushes, refused, carrier, endpoints, counts, disk, replicas, webhook, stalled } = situation
  const problems = problemsOf(situation)
  const { verdict, text, caveats } = headlineOf(situation, problems, nowMs)
  const count = (condition: ReturnType<typeof conditionOf>) => endpoints.filter((state) => conditionOf(state) === condition).length
  return {
    at: presentInstant(nowMs),
    verdict,
    headline: text,
    caveats,
    problems: problems.map((problem) => presentProblem(problem, situation, nowMs)),
    pushes: {
      health: pushes.health,
      standing: pushStanding(pushes),
      state: pushStateWords(situation),
      evidence: plainText(pushEvidence(pushes, nowMs, doPollsReplacePushes(situation))),
      lastPushAt: presentInstant(pushes.lastPushAtMs),
      probation:
        pushes.probation === null
          ? null
          : { since: presentInstant(pushes.probation.sinceMs), trustedFrom: presentInstant(pushes.probation.untilMs) },
      refused: refused.map(({ cause, count: requests, fromMs, untilMs, parts, comeback }) => ({
        cause,
        count: requests,
        from: presentInstant(fromMs),
        until: presentInstant(untilMs),
        occasions: parts?.count ?? 1,
        lastFrom: presentInstant(parts?.lastFromMs ?? fromMs),
        pushes: comeback?.pushes ?? null,
        again: comeback?.again ?? null,
      })),
      misdirected: webhook.misdirected.map(({ path, isSigned, count, firstAtMs, lastAtMs }) => ({
        path,
        signed: isSigned,
        count,
        firstAt: presentInstant(firstAtMs),
        lastAt: presentInstant(lastAtMs),
      })),
    },
    carrier: {
      standing: carrierStanding(carrier).kind,
      state: carrierStateWords(situation),
      lastAnswerAt: presentInstant(carrier.lastAnswerAtMs),
      callsToday: carrier.budget.callsToday,
      callsPerDay: carrier.budget.callsPerDay,
    },
    endpoints: { delivering: count('delivering'), untried: count('untried'), failing: count('failing'), disabled: count('disabled') },
    inbox: { quarantined: counts.quarantined },
    watchdogs: stalled === null ? null : { stalled: stalled.parcels, isAll: stalled.isAll },
    parcels: { known: counts.parcels, watched: counts.watched, overdue: counts.overdue, unknown: counts.unknown },
    disk:
      disk === null
        ? null
        : {
            state: isDiskFull(disk) ? 'full' : isDiskLow(disk) ? 'low' : 'has_room',
            freeBytes: disk.freeBytes,
            storeBytes: disk.storeBytes,
          },
    replicas: replicas.map(({ name }) => name),
  }
}

function presentProblem(problem: Problem, situation: Situation, nowMs: number): OverviewAnswer['problems'][number] {
  const { title, sinceMs, evidence, todo } = explainProblem(problem, situation, nowMs)
  const [heading] = runbookOf(problem)
  return {
    kind: problem.kind,
    severity: isWarning(problem) ? 'warning' : 'problem',
    endpoint: 'state' in problem ? problem.state.endpoint.name : 'concern' in problem ? problem.concern.endpoint : null,
    replica: 'concern' in problem ? problem.concern.replica : null,
    title,
    since: presentInstant(sinceMs),
    evidence: evidence.map(plainText),
    todo: todo.map(plainText),
    runbook: `/docs/runbooks#${heading}`,
  }
}
