import { setFlagsFromString } from 'node:v8'

/**
 * V8 heap flags for this thread and the threads that it starts later (docs/decisions/0013-new-objects-are-young.md).
 *
 * No pretenuring: V8 decides in the first seconds which code makes long-lived objects. If early requests have to wait, it decides wrongly.
 * Then it puts short-lived objects into the old generation as long as the process lives.
 *
 * The old generation is collected when it has grown by a fifth, not when it has doubled. Otherwise a hundred megabytes of garbage could
 * stay after a flood of connections.
 */
export function setHeapFlags(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
  setFlagsFromString('--heap-growing-percent=20')
}
