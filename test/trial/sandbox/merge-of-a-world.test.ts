import { expect, test } from 'vitest'
import { parseAllAnswer } from '../../../src/core/domain/history/pull-response.ts'
import { parseWebhookEvent } from '../../../src/core/domain/ingest/parse-push.ts'
import { randomFor, shuffled } from '../../../src/trial/sandbox/parcel-plan.ts'
import { answers, recordAll } from '../../support/history/model.ts'
import type { Seen } from '../../support/history/observations.ts'
import { stillSandbox } from './sandbox-fixture.ts'

function seenPush(body: Uint8Array): Seen {
  const reading = parseWebhookEvent(body, null)
  if (!reading.ok) throw new Error(reading.reason)
  return { observation: reading.observation, body }
}

function seenPoll(json: string, asked: string, language: string, askedAtMs: number): Seen {
  const body = Buffer.from(json)
  const reading = parseAllAnswer(body, { asked, language, contentLanguage: null, askedAtMs })
  if (!reading.ok) throw new Error(reading.reason)
  return { observation: reading.observation, body }
}

test('pushes and polls of a hard world, in any order, merge into the carrier’s own answers', async () => {
  await using sandbox = await stillSandbox({ parcels: 100, hard: 0.3, faults: { languageGaps: 0.1 } })
  const seen = new Map<string, Seen[]>()
  while (!sandbox.finished()) {
    await sandbox.advance(7 * 3_600_000)
    for (const { trackingNumber, answers: now, entries } of sandbox.world.parcels()) {
      if (entries === 0) continue
      const polls = [seenPoll(now.en, trackingNumber, 'en', sandbox.now()), seenPoll(now.sv, trackingNumber, 'sv', sandbox.now() + 1)]
      seen.set(trackingNumber, [...(seen.get(trackingNumber) ?? []), ...polls])
    }
  }
  const random = randomFor(1, 'order')
  for (const { trackingNumber, answers: carrier, pushes } of sandbox.world.parcels()) {
    const all = shuffled(random, [...(seen.get(trackingNumber) ?? []), ...pushes.map(({ body }) => seenPush(Buffer.from(body)))])
    const served = answers(recordAll(all))
    for (const language of ['en', 'sv'] as const) {
      expect(served[`${trackingNumber}/all?${language}`], trackingNumber).toBe(carrier[language])
    }
  }
})
