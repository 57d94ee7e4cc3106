import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { type RelayProcess, spawnRelay } from './relay.ts'

export interface RunningProcess extends RelayProcess, AsyncDisposable {
  /** Resolves with the log line when the relay logs this message. */
  logged(message: string): Promise<string>
  /** Sends SIGTERM. Resolves with the exit code or signal. */
  stop(): RelayProcess['ended']
}

/** Config sections of a relay process that polls every second, and logs when it is ready. */
export const inSeconds = {
  upstream: { ratePerSecond: 1000, concurrency: 8 },
  poll: {
    cron: '* * * * * *',
    cadence: { Created: '1s', Ingested: '1s', DeliveryStarted: '1s', default: '1s', whenPushIsHealthy: 'x1' },
    finished: { tail: ['1s'], staleAfter: '30d' },
    missedPushGrace: '2s',
  },
  log: { level: 'info' },
} as const

/** Starts `parcel-relay serve`, which is killed on disposal. */
export async function runRelay(configPath: string, more: NodeJS.ProcessEnv = {}): Promise<RunningProcess> {
  const relay = await spawnRelay(configPath, more)
  const { process: child, ended } = relay
  return {
    ...relay,
    logged: (message) =>
      new Promise((resolve) => {
        if (child.stdout === null) throw new Error('the process has no standard output')
        createInterface({ input: child.stdout }).on('line', (line) => {
          if (line.includes(`"msg":${JSON.stringify(message)}`)) resolve(line)
        })
      }),
    stop: () => {
      child.kill('SIGTERM')
      return ended
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Reads one value of a relay's /metrics, by its name and labels as printed there. Returns 0 if it is missing. */
export async function metricOf(internalUrl: string, name: string): Promise<number> {
  const text = await (await fetch(`${internalUrl}/metrics`)).text()
  const line = text.split('\n').find((one) => one.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1) ?? 0)
}

/** Works only on Linux. */
export function memoryOf(pid: number): { readonly residentBytes: number; readonly peakBytes: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) * 1024
  return { residentBytes: bytes('VmRSS'), peakBytes: bytes('VmHWM') }
}
