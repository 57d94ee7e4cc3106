import type { ReadSide } from '../store/read-store.ts'
import type { Clock, Log, Meter } from './ports.ts'
import type { WriteSide } from './write-side.ts'

/**
 * The parts of the relay that use cases share. A factory names those that it uses, at most eight: `Pick<Relay, 'clock' | 'log'>`. Of a part with
 * many functions it may name only those: `Reads<'listEndpoints'>`.
 */
export interface Relay {
  readonly clock: Clock
  readonly log: Log
  readonly meter: Meter
  readonly reads: ReadSide
  readonly write: Omit<WriteSide, 'record'>
}

/** Only these functions of a part. */
export type Part<Name extends keyof Relay, Verb extends keyof Relay[Name]> = { readonly [Key in Name]: Pick<Relay[Key], Verb> }
export type Reads<Verb extends keyof Relay['reads']> = Part<'reads', Verb>
export type Writes<Verb extends keyof Relay['write']> = Part<'write', Verb>
