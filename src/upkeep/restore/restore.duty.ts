import { type EventDescriptions, type EventsOf, text, time } from '../../console/events/operator-events.ts'
import type { Duty } from '../../core/flow/ports.ts'
import { instant, wholeNumber } from '../../core/http/server/answer-schemas.ts'
import type { DutyParts } from '../../core/wiring/relay.ts'

export const RESTORE_EVENTS = {
  /**
   * The store was restored from a backup while no relay ran. The feed continues after `nextSequence`. Endpoints may receive their events again, under
   * new ids.
   */
  store_restored: {
    kind: 'warn',
    state: 'store restored',
    page: '/',
    tell: (of) => [
      `The store was restored from the backup ${of('backup')} of `,
      time(of('madeAt')),
      `: sequences go on after ${of('nextSequence')}`,
    ],
    members: () => ({
      backup: text(),
      madeAt: instant().nullable(),
      lastSequence: wholeNumber().describe('The last sequence of the backup.'),
      nextSequence: wholeNumber().describe('The next event of the feed gets a sequence above this.'),
      delivered: wholeNumber().nullable().describe('How many deliveries were accepted after the backup; null: not known.'),
    }),
  },
} satisfies EventDescriptions

declare module '../../core/domain/delivery/operator-event.ts' {
  interface OperatorEvents extends EventsOf<typeof RESTORE_EVENTS> {}
}

const LOOK_EVERY_MS = 5000

/** Notifies operators of restores, once, because no store is restored while a relay uses it. */
export function restoreDuty({ write, clock, wakeDispatcher }: DutyParts): Duty {
  let hasTold = false
  return {
    role: 'janitor',
    everyMs: LOOK_EVERY_MS,
    failure: 'operators could not be notified of a restore; the relay retries',
    async pass() {
      if (!hasTold && (await write.tellRestores({ nowMs: clock.now() })) > 0) wakeDispatcher()
      hasTold = true
      return 'idle'
    },
  }
}
