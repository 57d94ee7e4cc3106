import { setFlagsFromString } from 'node:v8'

/**
 * How V8 keeps the heap, on this thread and those it starts from now on (docs/decisions/0013-new-objects-are-young.md).
 *
 * New objects begin in the young generation. V8 judges by the first seconds which places of the code make objects that live long: where early
 * requests had to wait, it would put short-lived objects into the old generation for as long as the process lives.
 *
 * The old generation is collected once it has grown by a fifth, and not when it has doubled: what a flood of connections leaves behind would
 * otherwise wait there, a hundred megabytes of it.
 */
export function setHeapFlags(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
  setFlagsFromString('--heap-growing-percent=20')
}
