/** The beginning of the body of a push that a relay sends to itself as a test. No event of a carrier begins like this. */
const START = '{"parcelRelayCheck":"'
const FORM = /^\{"parcelRelayCheck":"[0-9a-f-]{36}"\}$/

/** Returns the body of a push that tests whether the relay accepts pushes. @param id A UUID, so that no two bodies are equal. */
export function checkPushBody(id: string): string {
  return `${START}${id}"}`
}

const BODY_BYTES = checkPushBody('0'.repeat(36)).length

/** Whether a push with a valid signature is a test by a relay. Tests are answered and counted, but not stored. */
export function isCheckPush(body: Uint8Array): boolean {
  return body.length === BODY_BYTES && FORM.test(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1'))
}
