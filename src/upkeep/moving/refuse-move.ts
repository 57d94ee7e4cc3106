import { hasUnended, UNENDED_MAX } from '../../core/domain/admin/job.ts'
import { counted } from '../../core/domain/amounts.ts'
import type { LostKeys } from '../../core/domain/delivery/endpoint-keys.ts'
import { AppError } from '../../core/domain/errors.ts'
import type { Reads, Writes } from '../../core/flow/relay.ts'

interface RefuseMovePorts extends Reads<'listEndpoints' | 'listJobs'>, Writes<'tombstoneKey'> {
  readonly replicas: { list(): Promise<readonly unknown[]> }
  readonly endpointKeys: { check(): Promise<LostKeys | null> }
  /** Returns the name of the key file; null: the config names the keys. */
  readonly keyFile: () => string | null
}

/** Throws `not_movable` if the store may not be moved to a database (`toDatabase`) or to a file. */
export async function refuseMove(ports: RefuseMovePorts, { toDatabase }: { readonly toDatabase: boolean }): Promise<void> {
  await refuseLostKeys(ports, toDatabase)
  if (hasUnended(await ports.reads.listJobs({ before: null, limit: UNENDED_MAX }), 'backup'))
    throw new AppError('not_movable', 'A backup of the store is being made. Wait until it is done, or cancel its job.')
  const others = (await ports.replicas.list()).length - 1
  if (!toDatabase && others > 0)
    throw new AppError(
      'not_movable',
      `A file serves one relay, and ${counted(others, 'other relay uses', 'other relays use')} this database. Stop all but this relay first.`,
    )
}

/** Throws if the relay could not decrypt the keys of endpoints after the move, which copies them in encrypted form. */
async function refuseLostKeys({ reads, write, endpointKeys, keyFile }: RefuseMovePorts, toDatabase: boolean): Promise<void> {
  const hasTombstoneKey = (await write.tombstoneKey()).sealed !== null
  const isSealing = hasTombstoneKey || (await reads.listEndpoints()).some(({ keys }) => keys !== null)
  const file = keyFile()
  if (file !== null && (toDatabase || isSealing)) {
    const why = toDatabase
      ? 'PostgreSQL needs secrets.atRestKeys'
      : 'the keys of endpoints or of erased parcels are encrypted with a key beside the store'
    throw new AppError(
      'not_movable',
      `${why}. First write secrets: { atRestKeys: [{ file: PATH }] } with the path of ${file}, or of a new key if there is no such file, and reload.`,
    )
  }
  const lost = await endpointKeys.check()
  if (lost !== null)
    throw new AppError('not_movable', `The keys of ${lost.endpoints} endpoints cannot be opened. Restore ${lost.where} first.`)
}
