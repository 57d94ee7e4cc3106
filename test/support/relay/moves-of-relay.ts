import { expect, vi } from 'vitest'
import type { Answered } from '../network/push-load.ts'
import type { WebhookReceiver } from '../network/webhook-receiver.ts'
import { fetchDocumented } from '../portal/api-document.ts'
import type { Asker } from './caught-up.ts'
import { ask } from './relay.ts'

export async function postJson(
  { internalUrl, token }: Asker,
  path: string,
  body: object,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await fetchDocumented(`${internalUrl}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: await response.json() }
}

/** Starts a move of a relay's store. Returns the path of its job. */
export async function startMove(asker: Asker, to: string): Promise<string> {
  const started = await postJson(asker, '/relay/store/move', { to })
  expect(started).toMatchObject({ status: 202, body: { kind: 'move' } })
  const { id } = Object(started.body)
  return `/relay/jobs/${id}`
}

/** Resolves with the job when it has ended. Another relay may take over meanwhile. */
export async function endedJob({ internalUrl, token }: Asker, job: string): Promise<unknown> {
  return await vi.waitFor(
    async () => {
      const found: unknown = await (await ask(internalUrl, token, job)).json()
      expect(found).toMatchObject({ endedAt: expect.any(String) })
      return found
    },
    { interval: 100 },
  )
}

/** Returns the longest time between the starts of two successive accepted pushes. */
export function longestPauseMs(answers: readonly Answered[]): number {
  const times = answers.filter(({ status }) => status === 200).map(({ begunAtMs }) => begunAtMs)
  const inOrder = times.toSorted((a, b) => a - b)
  return Math.max(...inOrder.slice(1).map((time, at) => time - (inOrder[at] ?? time)))
}

/** Checks that each event names its parcel's previous event, which must have come before it. Returns the number of different events. */
export function expectInOrder({ pushes }: WebhookReceiver): number {
  const sent = new Set(['0'])
  const early: string[] = []
  for (const { headers } of pushes) {
    const [before, sequence] = [headers['relay-previous-sequence'] ?? '', headers['relay-sequence'] ?? '']
    if (!sent.has(before)) early.push(sequence)
    sent.add(sequence)
  }
  expect(early).toEqual([])
  return sent.size - 1
}
