/** What operators are told out of band, once each (DOMAIN 7.4): nothing here is a parcel's event. */
export type OperatorEvent =
  | {
      readonly event: 'endpoint_disabled'
      readonly endpoint: { readonly id: string; readonly name: string }
      readonly because: 'gone' | 'failing'
    }
  | { readonly event: 'endpoint_recovered'; readonly endpoint: { readonly id: string; readonly name: string } }
  | { readonly event: 'credentials_refused' }

export function encodeOperatorEvent(event: OperatorEvent, nowMs: number): Uint8Array {
  return Buffer.from(JSON.stringify({ ...event, at: new Date(nowMs).toISOString() }))
}
