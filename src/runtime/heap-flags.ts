import { setFlagsFromString } from 'node:v8'

/**
 * Sets V8 heap flags for this thread and the threads that it starts later (docs/decisions/0013-new-objects-are-young.md).
 *
 * The first flag turns off pretenuring. V8 decides in the first seconds which code makes long-lived objects. If early requests have to wait,
 * V8 decides wrongly, and then puts short-lived objects into the old generation as long as the process lives.
 *
 * With the second flag, V8 collects the old generation when it has grown by a fifth. By default V8 lets it double, and then a hundred megabytes
 * of garbage could stay after a flood of connections.
 */
export function setHeapFlags(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
  setFlagsFromString('--heap-growing-percent=20')
}
