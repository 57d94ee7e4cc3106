import { setFlagsFromString } from 'node:v8'

/**
 * Every new object begins in the young generation, on this thread and those it starts from now on. V8 judges by the first seconds which
 * places of the code make objects that live long, and holds to it: where early requests had to wait, it would put short-lived objects into the
 * old generation for as long as the process lives, where they keep whole requests alive (docs/decisions/0013-new-objects-are-young.md).
 */
export function keepNewObjectsYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
