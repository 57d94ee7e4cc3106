import { expect, vi } from 'vitest'
import type { Asker } from './caught-up.ts'
import { ADMIN, ask, logIn } from './relay.ts'
import { type RunningProcess, runRelay } from './relay-process.ts'

/** A replica as `GET /relay/replicas` lists it. */
export interface ToldReplica {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly configFingerprint: string
  readonly startedAt: string
  readonly lastSeenAt: string
  readonly roles: readonly string[]
}

export interface ReplicaProcess extends RunningProcess {
  readonly asker: Asker
  replicas(): Promise<readonly ToldReplica[]>
  itself(): Promise<ToldReplica | undefined>
}

export async function startReplica(config: string, more: NodeJS.ProcessEnv = {}): Promise<ReplicaProcess> {
  const relay = await runRelay(config, more)
  const asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
  const replicas = async () => {
    const answer: unknown = await (await ask(asker.internalUrl, asker.token, '/relay/replicas')).json()
    return isTold(answer) ? answer.replicas : []
  }
  return {
    ...relay,
    asker,
    replicas,
    // A replica's name is made of its host and its process id.
    itself: async () => (await replicas()).find(({ name }) => name.endsWith(`/${relay.process.pid}`)),
  }
}

// The relay itself gives the answer, so the fields of the replicas are not checked.
function isTold(answer: unknown): answer is { readonly replicas: readonly ToldReplica[] } {
  return typeof answer === 'object' && answer !== null && 'replicas' in answer && Array.isArray(answer.replicas)
}

/** Resolves when there are `replicas` replicas, every role is held, and the roles are shared as evenly as possible. */
export async function untilShared(one: ReplicaProcess, replicas: number, endpoints: number): Promise<readonly ToldReplica[]> {
  const shares = (told: readonly ToldReplica[], isOfKind: (role: string) => boolean) =>
    told.map(({ roles }) => roles.filter(isOfKind).length)
  const isEven = (counts: readonly number[]) => Math.max(...counts) - Math.min(...counts) <= 1
  return await vi.waitFor(
    async () => {
      const told = await one.replicas()
      const all = told.flatMap(({ roles }) => roles)
      expect([told.length, all.length, new Set(all).size], JSON.stringify(told)).toEqual([replicas, endpoints + 2, endpoints + 2])
      const isDispatcher = (role: string) => role.startsWith('dispatcher/')
      expect([isEven(shares(told, isDispatcher)), isEven(shares(told, (role) => !isDispatcher(role)))]).toEqual([true, true])
      return told
    },
    { interval: 50 },
  )
}
