import type { DispatchRound, DispatchRoundReport } from '../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'

/** A report as one thread sends it to another. `endpoints` null: nothing but their health has changed since the last report. */
export interface SentReport extends Omit<DispatchRoundReport, 'endpoints'> {
  readonly endpoints: readonly EndpointState[] | null
}

/**
 * Leaves the endpoints out of a report if they have not changed, so that a report costs the same for few endpoints and for many. The receiver
 * then keeps its endpoint objects, and what it has prepared for each. Make one sender for each thread.
 */
export function createReportSender(): (report: DispatchRoundReport) => SentReport {
  let sent: readonly EndpointState[] | null = null
  return (report) => {
    const known = sent
    sent = report.endpoints
    const isKnown = known?.length === sent.length && sent.every((state, at) => isSame(state, known[at]))
    return isKnown ? { ...report, endpoints: null } : report
  }
}

export function createReportReceiver(): (report: SentReport) => DispatchRoundReport {
  let known: readonly EndpointState[] = []
  return (report) => {
    known = report.endpoints ?? known
    return { ...report, endpoints: known }
  }
}

/** Copies the answers in a round. Each answer is a view of a larger buffer, and a message to a thread would copy the whole buffer. */
export function withoutViews({ settled, ...round }: DispatchRound): DispatchRound {
  return {
    ...round,
    settled: settled.map((attempt) => ({
      ...attempt,
      result: { ...attempt.result, answerStart: new Uint8Array(attempt.result.answerStart) },
    })),
  }
}

function isSame(state: EndpointState, known: EndpointState | undefined): boolean {
  if (known === undefined || state.endpoint !== known.endpoint || state.keys !== known.keys) return false
  // Ignore the rest of the health: only `probing` and `pace` decide what is sent.
  const { health } = state
  return (
    state.disabled === known.disabled && (health.probing === null) === (known.health.probing === null) && health.pace === known.health.pace
  )
}
