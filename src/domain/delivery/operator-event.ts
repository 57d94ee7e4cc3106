/** The name of the endpoint for operator events, in the log and in lists of deliveries. */
export const OPERATOR_NAME = '(operator)'

/** An event for operators, sent once (DOMAIN 7.4). It is never about a parcel. */
export type OperatorEvent =
  | {
      readonly event: 'endpoint_disabled'
      readonly endpoint: { readonly id: string; readonly name: string }
      readonly because: 'gone' | 'failing'
    }
  | { readonly event: 'endpoint_recovered'; readonly endpoint: { readonly id: string; readonly name: string } }
  | { readonly event: 'credentials_refused' }
  /**
   * `pushes_silent`: the carrier scans but pushes nothing. `pushes_trusted`: afterwards pushes arrive again and few are lost. `lastPushAt`:
   * the last push with news.
   */
  | { readonly event: 'pushes_silent' | 'pushes_trusted'; readonly lastPushAt: string | null }

/** The body that the operator's endpoint is sent, as JSON. */
export function encodeOperatorEvent(event: OperatorEvent, nowMs: number): Uint8Array {
  return Buffer.from(JSON.stringify({ ...event, at: new Date(nowMs).toISOString() }))
}
