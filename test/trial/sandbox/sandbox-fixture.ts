import type { Sandbox } from '../../../src/trial/sandbox/control-api.ts'
import type { SandboxOptions } from '../../../src/trial/sandbox/options.ts'
import { startSandbox } from '../../../src/trial/sandbox/sandbox.ts'

export const anchorMs = Date.UTC(2026, 5, 1, 12)

/** Opens a sandbox that advances only when told, and stops when the test ends. */
export async function stillSandbox(options: SandboxOptions = {}): Promise<Sandbox & AsyncDisposable> {
  const sandbox = await startSandbox({ speed: 0, parcels: 6, anchorMs, ...options })
  return { ...sandbox, [Symbol.asyncDispose]: () => sandbox.stop() }
}

export function parsed(json: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(json)
  if (typeof value !== 'object' || value === null) throw new Error(`not an object: ${json}`)
  return { ...value }
}

export function entriesOf(json: string): readonly Readonly<Record<string, unknown>>[] {
  const { statuses } = parsed(json)
  if (!Array.isArray(statuses)) throw new Error('no statuses')
  return statuses.map((entry) => parsed(JSON.stringify(entry)))
}
