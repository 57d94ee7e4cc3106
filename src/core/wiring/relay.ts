import type { RemoteCarrier } from '../carrier/call/carrier-client.ts'
import type { Config } from '../config/config.ts'
import type { RestoreRecord } from '../domain/admin/restore.ts'
import type { Authenticate, TokenKeyring } from '../flow/admin/tokens/authenticate.ts'
import type { EndpointKeys } from '../flow/delivery/endpoint-vault.ts'
import type { LogDigest } from '../flow/log-digest.ts'
import type { PushHealthMonitor } from '../flow/polling/poller.ts'
import type { Log, Meter, Vault } from '../flow/ports.ts'
import type { AtRest } from './at-rest-keys.ts'
import type { Certificates } from './certificates.ts'
import type { Closing } from './closing.ts'
import type { Duties } from './create-duties.ts'
import type { Recording } from './open-recording.ts'
import type { Storage } from './opened-storage.ts'

/**
 * The parts of the relay that several capabilities use, in about the order in which `app.ts` makes them. Each file takes those that it uses, at most
 * eight; only `app.ts` has them all. A wing adds its own to this interface (`use-cases.ts` of the wing), and no file of the core takes those.
 */
export interface Relay extends Storage, Recording {
  readonly log: Log
  readonly digest: LogDigest
  readonly closing: Closing
  /** The settings in effect. */
  readonly settings: () => Config
  /** Whether nothing is polled by schedule at a time. */
  readonly isQuiet: (nowMs: number) => boolean
  /** What works in the background. */
  readonly duties: Duties
  /** Call when there may be something to deliver. */
  readonly wakeDispatcher: () => void
  readonly atRest: AtRest
  readonly vault: Vault
  readonly endpointKeys: EndpointKeys
  readonly carrier: RemoteCarrier
  readonly pushes: PushHealthMonitor
  readonly certificates: Certificates
  /** When the store was restored from backups, the oldest first. */
  readonly restores: readonly RestoreRecord[]
  readonly meter: Meter
  readonly authenticate: Authenticate
  /** Authenticates people in the portal. */
  readonly sessions: Authenticate
  /** The keys of tokens, which also sign the ids of forms. */
  readonly keyring: TokenKeyring
  /** The ports on which the relay listens. Nothing is sent to these ports on this machine, unless the config allows it. */
  readonly ownPorts: () => readonly number[]
}

/** What a duty of a wing is made of, besides the capabilities. */
export type DutyParts = Pick<Relay, 'reads' | 'write' | 'clock' | 'log' | 'meter' | 'settings' | 'wakeDispatcher' | 'replicas'> &
  Pick<Relay, 'duties' | 'reprocessed' | 'retired' | 'carrier' | 'isQuiet'>
