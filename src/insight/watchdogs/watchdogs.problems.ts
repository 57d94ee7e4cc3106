import { type EventDescriptions, type EventsOf, since, time } from '../../console/events/operator-events.ts'
import type { FindConcerns, Found } from '../../console/problems/concern.ts'
import type { ConcernDescriptions } from '../../console/problems/concern-kinds.ts'
import { counted, spanText } from '../../core/domain/amounts.ts'
import type { Reads } from '../../core/flow/relay-part.ts'
import { wholeNumber } from '../../core/http/server/answer-schemas.ts'
import { countWaiting, heldSinceMs } from './watchdogs.rows.ts'

export const WATCHDOG_EVENTS = {
  /** Watchdogs tell nothing, because the relay neither gets pushes nor answers of the carrier. */
  watchdogs_held: {
    kind: 'warn',
    state: 'watchdogs held back',
    page: '/watchdogs',
    tell: (of) => [
      `No push comes and the carrier answers nothing since `,
      time(of('since')),
      `, so nothing is said of ${counted(Number(of('held')), 'parcel that may be', 'parcels that may be')} stalled`,
    ],
    members: () => ({ held: wholeNumber().describe('How many parcels may be stalled.'), since: since() }),
  },
  watchdogs_resumed: {
    kind: 'ok',
    state: 'watchdogs resumed',
    page: '/watchdogs',
    tell: () => ['Parcels are watched over again'],
    members: () => ({ since: since() }),
  },
} satisfies EventDescriptions

declare module '../../core/domain/delivery/operator-event.ts' {
  interface OperatorEvents extends EventsOf<typeof WATCHDOG_EVENTS> {}
}

export const WATCHDOG_KINDS = {
  watchdogs_held: { canWait: true, runbook: ['watchdogs_held', 'watchdogs are held back'] },
} satisfies ConcernDescriptions

declare module '../../console/problems/concern-kinds.ts' {
  interface ConcernKinds extends Readonly<Record<keyof typeof WATCHDOG_KINDS, unknown>> {}
}

/** Finds out whether verdicts are held back because the relay is deaf (DOMAIN 9.5). */
export function watchdogProblems({ reads }: Reads<'session'>): FindConcerns {
  return async ({ nowMs }) => {
    const sinceMs = await heldSinceMs(reads.session)
    return sinceMs === null ? [] : concernsOfHeld({ sinceMs, held: await countWaiting(reads.session) }, nowMs)
  }
}

const HELD_LONG_MS = 3_600_000

export function concernsOfHeld({ sinceMs, held }: { readonly sinceMs: number; readonly held: number }, nowMs: number): readonly Found[] {
  if (held === 0 || nowMs - sinceMs < HELD_LONG_MS) return []
  return [
    {
      kind: 'watchdogs_held',
      title: `Nothing is said of ${counted(held, 'parcel that may be', 'parcels that may be')} stalled`,
      sinceMs,
      evidence: [
        `For ${spanText(nowMs - sinceMs)} neither pushes nor polls have told anything, so a silent parcel and a deaf relay look alike.`,
      ],
      todo: ['Mend what keeps the carrier from answering. The parcels are then asked about before anything is told.'],
    },
  ]
}
