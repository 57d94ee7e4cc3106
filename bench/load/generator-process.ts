import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { GeneratorCommand, GeneratorReply } from './messages.ts'
import type { RequestPlan } from './requests.ts'
import type { RunOptions, RunResult } from './run.ts'

/** A load generator in its own process. */
export interface Generator {
  prepare(plan: RequestPlan): Promise<void>
  /** Rejects if any response was not 200. */
  run(options: RunOptions): Promise<RunResult>
  /** Accepts any outcome; for runs in which the server is killed. */
  runWhatever(options: RunOptions): Promise<RunResult>
  stop(): Promise<void>
}

export function startGenerator(): Generator {
  const child = fork(fileURLToPath(new URL('./generator.ts', import.meta.url)), { serialization: 'advanced' })
  const ended = once(child, 'exit')

  const tell = async (command: GeneratorCommand): Promise<Exclude<GeneratorReply, { kind: 'failed' }>> => {
    const reply = new Promise<GeneratorReply>((resolve) => child.once('message', (message: GeneratorReply) => resolve(message)))
    child.send(command)
    const said = await Promise.race([reply, ended.then(() => Promise.reject(new Error('the load generator is gone')))])
    if (said.kind === 'failed') throw new Error(`the load generator failed: ${said.message}`)
    return said
  }
  const runWhatever = async (options: RunOptions): Promise<RunResult> => {
    const said = await tell({ kind: 'run', options })
    if (said.kind !== 'ran') throw new Error('the load generator sent an unexpected reply')
    return said.result
  }

  return {
    async prepare(plan) {
      await tell({ kind: 'prepare', plan })
    },
    async run(options) {
      const result = await runWhatever(options)
      const others = Object.keys(result.outcomes).filter((outcome) => outcome !== '200')
      if (others.length > 0) throw new Error(`some responses were not 200: ${JSON.stringify(result.outcomes)}`)
      return result
    },
    runWhatever,
    async stop() {
      child.disconnect()
      await ended
    },
  }
}
