import { type CarrierStanding, carrierStanding } from '../../core/domain/polling/carrier-answer.ts'
import { type PushStanding, pushStanding } from './push-standing.ts'
import { areOnlyMisunderstood, type Situation } from './verdict.ts'

export const STATE_TONES = ['ok', 'warn', 'bad', 'off', 'none'] as const

/** A state as the command `status` and the portal show it. `off`: it rests because of another state; `none`: there is no evidence yet. */
export interface StateWords {
  readonly tone: (typeof STATE_TONES)[number]
  readonly words: string
}

type Pair = readonly [tone: StateWords['tone'], words: string]

const PUSHES: Readonly<Record<PushStanding, Pair>> = {
  none: ['none', 'none yet'],
  too_early: ['none', 'too early to tell'],
  healthy: ['ok', 'arriving'],
  resumed: ['warn', 'arriving again'],
  lossy: ['warn', 'arriving, many are lost'],
  not_understood: ['warn', 'many are not understood'],
  silent: ['bad', 'silent'],
}

const CARRIER: Readonly<Record<CarrierStanding['kind'], Pair>> = {
  refused: ['bad', 'refuses our password'],
  failing: ['bad', 'failing, calls pause'],
  troubled: ['warn', 'the last call failed'],
  answers: ['ok', 'the last call was answered'],
  unasked: ['none', 'not asked yet'],
}

export function pushStateWords(situation: Pick<Situation, 'notReady' | 'pushes' | 'held'>): StateWords {
  if (situation.notReady.length > 0) return wordsOf(['bad', 'refused'])
  if (areOnlyMisunderstood(situation)) return wordsOf(['bad', 'not understood'])
  return wordsOf(PUSHES[pushStanding(situation.pushes)])
}

/** A relay that is not ready does not poll. */
export function carrierStateWords({ notReady, carrier }: Pick<Situation, 'notReady' | 'carrier'>): StateWords {
  return wordsOf(notReady.length > 0 ? ['off', 'not polled'] : CARRIER[carrierStanding(carrier).kind])
}

function wordsOf([tone, words]: Pair): StateWords {
  return { tone, words }
}
