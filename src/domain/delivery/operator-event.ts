/** What operators are told out of band, once each (DOMAIN 7.4): nothing here is a parcel's event. */
export type OperatorEvent =
  | {
      readonly event: 'endpoint_disabled'
      readonly endpoint: { readonly id: string; readonly name: string }
      readonly because: 'gone' | 'failing'
    }
  | { readonly event: 'endpoint_recovered'; readonly endpoint: { readonly id: string; readonly name: string } }
  | { readonly event: 'credentials_refused' }
  /** No pushes come although the carrier scans; and, once after that, they come and few are lost. `lastPushAt`: the last that brought news. */
  | { readonly event: 'pushes_silent' | 'pushes_trusted'; readonly lastPushAt: string | null }

export function encodeOperatorEvent(event: OperatorEvent, nowMs: number): Uint8Array {
  return Buffer.from(JSON.stringify({ ...event, at: new Date(nowMs).toISOString() }))
}
