import { createEgressGuard, type EgressOptions } from '../../../src/core/outbound/egress-guard.ts'
import { createSender, type SenderOptions } from '../../../src/core/outbound/sender.ts'

export const LOOPBACK = ['127.0.0.0/8']
const body = Buffer.from('{"status":"Created"}')

/** Opens a sender that may post to this machine by default. `post` sends a small event to a URL. */
export function openSender(egress: Partial<EgressOptions> = {}, options: Partial<SenderOptions> = {}) {
  const guard = createEgressGuard({ allowNetworks: LOOPBACK, ownPorts: () => [], ...egress })
  const clock = { now: () => Date.now(), monotonic: () => performance.now() }
  const sender = createSender({ guard, timeoutMs: 5_000, clock, ...options })
  return {
    sender,
    post: (url: string, ca?: string) => sender.send({ url, headers: { 'x-a': '1' }, body, ...(ca === undefined ? {} : { route: { ca } }) }),
    [Symbol.asyncDispose]: () => sender.close(),
  }
}

/** Returns the stored first bytes of an answer as text. */
export const keptText = (result: { readonly answerStart: Uint8Array }): string => Buffer.from(result.answerStart).toString()
