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
    // Node's compile cache is in the temporary folder too. Its keys contain the program's path, so a later run could not use it anyway.
    env: { ...process.env, ...LAUNCH.env, NODE_COMPILE_CACHE: join(folder, 'cache') },
  }
}
