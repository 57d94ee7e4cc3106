import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type AskRelay, describeProblem, openRelay } from '../../src/console/cli/asking/ask-relay.ts'
import { memberOf, textOf } from '../../test/support/runner/members.ts'
import { type RelayServer, startRelay } from '../servers/relay.ts'
import { OPERATOR } from '../servers/relay-config.ts'
import { PAST_ENDPOINT } from '../stores/past.ts'

/** A relay with an operator who is logged in. */
export interface OperatedRelay extends Omit<RelayServer, 'ask'> {
  readonly ask: AskRelay
  /** Orders a job, such as a backup. */
  order(path: string, body?: object): Promise<OrderedJob>
}

export interface OrderedJob {
  /** The job as the API shows it. */
  look(): Promise<unknown>
  /** Resolves with the job once it is completed, and rejects if it was not. */
  done(): Promise<unknown>
  /** Cancels it, and resolves once it has ended. */
  cancel(): Promise<void>
}

const LOOK_MS = 100

/** Returns the folder for backups of a relay in this folder. */
export function backupsIn(folder: string): string {
  return join(folder, 'backups')
}

/** Starts a relay on the store `relay.db` in a folder. The filters of its endpoint accept no event of the load generator. */
export async function startOperatedRelay(relayEntry: string, folder: string): Promise<OperatedRelay> {
  const relay = await startRelay(relayEntry, folder, {
    storePath: join(folder, 'relay.db'),
    sections: {
      apps: [{ ...OPERATOR.app, scopes: ['status', 'admin'] }],
      backup: { directory: backupsIn(folder) },
      endpoints: [
        {
          name: PAST_ENDPOINT,
          url: 'http://127.0.0.1:9/',
          sharedKey: 'a-key-that-signs-for-the-bench-only',
          filters: { status: ['DeliverySucceeded'] },
        },
      ],
      delivery: { allowNetworks: ['127.0.0.0/8'] },
    },
  })
  const ask = await openRelay({ url: relay.internalUrl, username: OPERATOR.app.username, password: OPERATOR.password })
  return {
    ...relay,
    ask,
    async order(path, body = {}) {
      const answer = await ask('POST', path, { type: 'application/json', text: JSON.stringify(body) })
      const id = textOf(answer.body, 'id')
      if (answer.status !== 202 || id === null) throw new Error(`${path}: ${describeProblem(answer)}`)
      return jobOf(ask, `/relay/jobs/${id}`)
    },
  }
}

/** Tells whether a job that the API showed had ended. */
export function hasEnded(job: unknown): boolean {
  return textOf(job, 'endedAt') !== null
}

function jobOf(ask: AskRelay, path: string): OrderedJob {
  const look = async () => {
    const answer = await ask('GET', path)
    if (answer.status !== 200) throw new Error(`${path}: ${describeProblem(answer)}`)
    return answer.body
  }
  const ended = async () => {
    for (;;) {
      const job = await look()
      if (hasEnded(job)) return job
      await pause(LOOK_MS)
    }
  }
  return {
    look,
    async done() {
      const job = await ended()
      if (textOf(job, 'state') !== 'done') throw new Error(`a job ended as ${JSON.stringify(job)}`)
      return job
    },
    async cancel() {
      await ask('DELETE', path)
      await ended()
    },
  }
}

/** Returns the step of a job that the API showed, or its kind if it has no steps. */
export function stepOf(job: unknown): string {
  return textOf(memberOf(job, 'progress'), 'step') ?? textOf(job, 'kind') ?? ''
}
