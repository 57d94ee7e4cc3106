import { join } from 'node:path'
import { inject } from 'vitest'
import { LAUNCH } from '../../../bench/servers/relay.ts'

/** Returns how to start the relay as shipped. It is compiled once for all tests (`compile-once`). */
export function shipped(program = join(inject('shippedFolder'), 'dist', 'main.js')) {
  const folder = inject('shippedFolder')
  return {
    folder,
    program,
    args: [...LAUNCH.flags, program],
    // The compile cache lies in the same temporary folder: its key contains the path, so a later run could never use it.
    env: { ...process.env, ...LAUNCH.env, NODE_COMPILE_CACHE: join(folder, 'cache') },
  }
}
