import { expect, vi } from 'vitest'
import type { SandboxParcel } from '../../../src/trial/sandbox/control-api.ts'
import { ask } from './relay.ts'

export type Language = 'en' | 'sv'

export interface Asker {
  readonly internalUrl: string
  readonly token: string
}

export async function textOf(
  { internalUrl, token }: Asker,
  identifier: string,
  kind: 'all' | 'latest',
  language: Language,
): Promise<string> {
  const response = await ask(internalUrl, token, `/v1/status/${identifier}/${kind}?language=${language}`)
  const text = await response.text()
  expect([identifier, response.status], text).toEqual([identifier, 200])
  return text
}

/**
 * Returns an identifier from an accepted push, by which an app can ask for the parcel. Null if no push was accepted, or if the carrier's pull API
 * finds the parcel only by its tracking number.
 */
export function knownByPush(parcel: SandboxParcel): string | null {
  const push = parcel.pushes.find(({ attempts }) => attempts.some(({ status }) => status === 200))
  if (parcel.numberOnly || push === undefined) return null
  const event: unknown = JSON.parse(push.body)
  const ids = typeof event === 'object' && event !== null && 'trackingIds' in event ? event.trackingIds : []
  return Array.isArray(ids) && typeof ids[0] === 'string' ? ids[0] : null
}

/** Waits until every answer in the language equals the carrier's, byte for byte. `nameOf` returns the identifier to ask by. */
export async function untilCaughtUp(
  asker: Asker,
  parcels: readonly SandboxParcel[],
  language: Language,
  nameOf: (parcel: SandboxParcel) => string,
): Promise<void> {
  let behind = parcels
  const look = async (): Promise<void> => {
    const answers = await Promise.all(behind.map((parcel) => textOf(asker, nameOf(parcel), 'all', language)))
    behind = behind.filter((parcel, nth) => answers[nth] !== parcel.answers[language])
    expect(behind.map(({ trackingNumber }) => trackingNumber)).toEqual([])
  }
  // Do not use `expect.poll` here. It needs the running test, which it cannot find when concurrent tests end.
  await vi.waitFor(look, { interval: 250 })
}

/** Resolves when no delivery waits to be sent. */
export async function untilSent({ internalUrl, token }: Asker): Promise<void> {
  const waiting = async () => {
    const pages: unknown[] = []
    // Ask for one state after the other. Two parallel requests could both miss a delivery that passes from `queued` to `retrying`.
    for (const state of ['queued', 'retrying']) {
      pages.push(await (await ask(internalUrl, token, `/relay/deliveries?state=${state}&limit=1`)).json())
    }
    return pages
  }
  const none = expect.objectContaining({ deliveries: [] })
  await vi.waitFor(async () => expect(await waiting()).toEqual([none, none]))
}
