import { setFlagsFromString } from 'node:v8'

/**
 * Sets V8 heap flags for this thread and the threads that it starts later (docs/decisions/0013-new-objects-are-young.md).
 *
 * The first flag stops V8 from learning which code makes long-lived objects. V8 puts the objects of such code into the old generation at once. It
 * learns only in the first seconds. If requests have to wait then, their objects live long, and V8 learns something wrong for the whole run.
 *
 * With the second flag, V8 collects the old generation when it has grown by a fifth. By default V8 lets it double, so that much garbage could
 * stay after a flood of connections.
 */
export function setHeapFlags(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
  setFlagsFromString('--heap-growing-percent=20')
}
