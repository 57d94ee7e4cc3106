import { join } from 'node:path'
import { inject } from 'vitest'
import { LAUNCH } from '../../bench/servers/relay.ts'

/** The relay as it is shipped and started, compiled once for all tests (`compile-once`). */
export function shipped() {
  const folder = inject('shippedFolder')
  const program = join(folder, 'dist', 'main.js')
  return {
    folder,
    program,
    args: [...LAUNCH.flags, program],
    // What Node keeps of it is gone with it: by its path, which is another each time, it would never be found again.
    env: { ...process.env, ...LAUNCH.env, NODE_COMPILE_CACHE: join(folder, 'cache') },
  }
}
