import type { Percentiles } from '../load/percentiles.ts'
import { type Server, startFloor } from '../servers/server.ts'

export interface Tally {
  /** Deliveries since the start, per endpoint. */
  readonly counts: readonly number[]
  readonly total: number
  /** Time on the receiver's own clock. */
  readonly atMs: number
  /** Age of the events that the first endpoint received since the last query. */
  readonly ageMs: Percentiles
}

/** The endpoints, in their own process. */
export interface Receivers extends Pick<Server, 'pid' | 'stop'> {
  /** Config sections of a relay that delivers to them. Silent endpoints come last. */
  readonly sections: Readonly<Record<string, object>>
  readonly ports: readonly number[]
  tally(): Promise<Tally>
}

export interface ReceiversOptions {
  readonly endpoints: number
  readonly silent?: number
  readonly stamped?: boolean
}

export async function startReceivers({ endpoints, silent = 0, stamped = false }: ReceiversOptions): Promise<Receivers> {
  const server = await startFloor('./receiver.ts', String(endpoints), String(silent), ...(stamped ? ['stamped'] : []))
  const said = await ask(server.port)
  return {
    ...server,
    ports: said.ports,
    sections: {
      endpoints: said.ports.map((port, at) => ({
        name: endpointNames(said.ports.length)[at],
        url: `http://127.0.0.1:${port}/`,
        sharedKey: 'a-key-that-signs-for-the-bench-only',
      })),
      delivery: { allowNetworks: ['127.0.0.0/8'] },
    },
    tally: async () => (await ask(server.port)).tally,
  }
}

export function endpointNames(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `endpoint-${at + 1}`)
}

async function ask(port: number): Promise<{ readonly ports: readonly number[]; readonly tally: Tally }> {
  const said: unknown = await (await fetch(`http://127.0.0.1:${port}/`)).json()
  if (typeof said !== 'object' || said === null || !('counts' in said && 'ports' in said && 'atMs' in said && 'ageMs' in said)) {
    throw new TypeError('the receiver says something else than what it counted')
  }
  const counts = numbers(said.counts)
  const [p50 = 0, p90 = 0, p99 = 0, max = 0] = numbers(said.ageMs)
  const total = counts.reduce((sum, count) => sum + count, 0)
  return { ports: numbers(said.ports), tally: { counts, total, atMs: Number(said.atMs), ageMs: { p50, p90, p99, max } } }
}

function numbers(list: unknown): readonly number[] {
  return Array.isArray(list) ? list.map(Number) : []
}
