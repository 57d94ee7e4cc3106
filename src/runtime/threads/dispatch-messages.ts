import type { DispatchRound, DispatchRoundReport } from '../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'

/** A report as threads send it. `endpoints` null: the same as in the last report, except for their health. */
export interface SentReport extends Omit<DispatchRoundReport, 'endpoints'> {
  readonly endpoints: readonly EndpointState[] | null
}

/**
 * Leaves the endpoints out of a report unless they have changed. So the cost of a report does not depend on their number. The dispatcher
 * also keeps the same objects, and recognises by them what it has prepared for each endpoint. Make one for each thread.
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

/** Copies the answers in a round. They are views, and a message would carry the whole buffer behind each. */
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
  // `probing` is the only part of an endpoint's health that decides what is sent.
  return state.disabled === known.disabled && (state.health.probing === null) === (known.health.probing === null)
}
