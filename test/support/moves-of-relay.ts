import { expect, vi } from 'vitest'
import type { Asker } from './caught-up.ts'
import { ask } from './relay.ts'

export async function postJson(
  { internalUrl, token }: Asker,
  path: string,
  body: object,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await fetch(`${internalUrl}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: await response.json() }
}

/** Starts a move of a relay's store; returns the path of its job. */
export async function startMove(asker: Asker, to: string): Promise<string> {
  const started = await postJson(asker, '/relay/store/move', { to })
  expect(started).toMatchObject({ status: 202, body: { kind: 'move' } })
  const { id } = Object(started.body)
  return `/relay/jobs/${id}`
}

/** Resolves with a job that has ended. The relay that answers may change meanwhile. */
export async function endedJob({ internalUrl, token }: Asker, job: string): Promise<unknown> {
  return await vi.waitFor(
    async () => {
      const found: unknown = await (await ask(internalUrl, token, job)).json()
      expect(found).toMatchObject({ endedAt: expect.any(String) })
      return found
    },
    { timeout: 60_000, interval: 100 },
  )
}
