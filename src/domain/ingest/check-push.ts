/** The body of a push that a relay sends to itself begins like this. No event of a carrier does. */
const START = '{"parcelRelayCheck":"'
const FORM = /^\{"parcelRelayCheck":"[0-9a-f-]{36}"\}$/

/** The body of a push that only tests whether pushes are taken. @param id a UUID, so that no two are equal */
export function checkPushBody(id: string): string {
  return `${START}${id}"}`
}

const BODY_BYTES = checkPushBody('0'.repeat(36)).length

/** Whether an authentic push is one that a relay has sent to itself. It is answered and counted, but not kept. */
export function isCheckPush(body: Uint8Array): boolean {
  return body.length === BODY_BYTES && FORM.test(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1'))
}
