import type { DispatchRound, DispatchRoundReport } from '../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'

/** A report as it crosses between threads. `endpoints` null: as in the last report, except for their health. */
export interface SentReport extends Omit<DispatchRoundReport, 'endpoints'> {
  readonly endpoints: readonly EndpointState[] | null
}

/**
 * Leaves the endpoints out of a report unless they have changed: their number does not grow with what a round delivers, and what is prepared for an
 * endpoint is remembered by its state. Make one for each thread.
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

/** A round whose views of answers are copied, because a message carries the whole buffer behind a view. */
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
  // Whether the endpoint is probed decides what is sent; nothing else of its health does.
  return state.disabled === known.disabled && (state.health.probing === null) === (known.health.probing === null)
}
