import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { ownGroup, tieToTest } from '../runner/tied-process.ts'

/** An address of this machine on which `openSilentPort` opens ports that drop packets. */
export const SILENT_ADDRESS = '127.0.0.2'
/** More connections than the system holds for a listener that accepts none. */
const FILLING = 8

/** Makes a port of `SILENT_ADDRESS` silent until the test ends: its process accepts nothing, and its backlog is full. Returns the port. */
export async function openSilentPort(): Promise<number> {
  const child = tieToTest(fork(fileURLToPath(new URL('silent-listener.ts', import.meta.url)), [SILENT_ADDRESS], ownGroup))
  const [port]: unknown[] = await once(child, 'message')
  if (typeof port !== 'number') throw new Error('the listener has no port')
  const fillers = Array.from({ length: FILLING }, () => connect(port, SILENT_ADDRESS).on('error', () => undefined))
  onTestFinished(() => {
    for (const filler of fillers) filler.destroy()
  })
  // All attempts to connect are made before the first `connect` event, so the backlog is full by then.
  await Promise.race(fillers.map((filler) => once(filler, 'connect')))
  return port
}
