import { type Glance, isInTrouble, isWarning, MANY_QUARANTINED, problemsOf } from '../../domain/admin/problems/verdict.ts'
import { counted, countText } from '../../domain/amounts.ts'
import { conditionOf } from '../../domain/delivery/endpoint-state.ts'
import { pushStanding } from '../../domain/polling/push-standing.ts'
import type { Marks } from './layout.ts'

/** Returns the words that the side bar shows next to each section with a problem, such as "2 problems". */
export function marksOf(glance: Glance): Marks {
  const { endpoints, counts, carrier, pushes } = glance
  const problems = problemsOf(glance)
  const isBad = problems.some((problem) => !isWarning(problem))
  const failing = endpoints.filter((state) => conditionOf(state) === 'failing').length
  const stopped = endpoints.filter((state) => isInTrouble(state)).length - failing
  return {
    ...(problems.length === 0 ? {} : { overview: [isBad ? 'bad' : 'warn', counted(problems.length, 'problem', 'problems')] }),
    ...(failing > 0
      ? { webhooks: ['bad', `${countText(failing)} failing`] }
      : stopped > 0
        ? { webhooks: ['bad', `${countText(stopped)} disabled`] }
        : {}),
    ...(counts.quarantined === 0
      ? {}
      : { inbox: [counts.quarantined < MANY_QUARANTINED ? 'warn' : 'bad', `${countText(counts.quarantined)} quarantined`] }),
    ...(carrier.credentials === 'refused'
      ? { carrier: ['bad', 'refused'] }
      : carrier.breaker.state !== 'closed'
        ? { carrier: ['bad', 'failing'] }
        : pushes.health === 'silent'
          ? { carrier: ['bad', 'silent'] }
          : pushStanding(pushes) === 'lossy'
            ? { carrier: ['warn', 'lossy'] }
            : {}),
  }
}
