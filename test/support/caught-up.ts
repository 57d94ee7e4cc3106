import { expect, vi } from 'vitest'
import type { SandboxParcel } from '../../src/sandbox/handle.ts'
import { ask } from './relay.ts'

export type Language = 'en' | 'sv'

/** One who asks a relay. */
export interface Asker {
  readonly internalUrl: string
  readonly token: string
}

/** The exact text of an answer; fails unless there is one. */
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
 * An identifier by which a relay knows a parcel without having asked anybody: one that an accepted push named. Null: it can know it only
 * by asking for the tracking number, because no push came through or because the carrier's pull API knows no other identifier.
 */
export function knownByPush(parcel: SandboxParcel): string | null {
  const push = parcel.pushes.find(({ attempts }) => attempts.some(({ status }) => status === 200))
  if (parcel.numberOnly || push === undefined) return null
  const event: unknown = JSON.parse(push.body)
  const ids = typeof event === 'object' && event !== null && 'trackingIds' in event ? event.trackingIds : []
  return Array.isArray(ids) && typeof ids[0] === 'string' ? ids[0] : null
}

/** Waits until every answer in the language is the carrier's own, byte for byte; `nameOf` says by which identifier to ask. */
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
  // Not `expect.poll`: it asks which test is running, and beside others that end meanwhile nobody can tell it.
  await vi.waitFor(look, { timeout: 30_000, interval: 250 })
}
