import type { Unstored } from '../../console/events/unstored.ts'
import { hasUnended, type Job, UNENDED_MAX } from '../../core/domain/admin/job.ts'
import type { Actor, OperatorAction } from '../../core/domain/admin/operator-action.ts'
import { AppError } from '../../core/domain/errors.ts'
import { isObject, member } from '../../core/domain/json-body.ts'
import { wrongInput } from '../../core/domain/read-input.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import type { Part, Reads, Writes } from '../../core/flow/relay-part.ts'
import type { ErasureTrace } from '../erasure/erasure.rules.ts'
import {
  type BackupFile,
  type BackupFolder,
  type BackupOrder,
  type BackupProgress,
  type BackupState,
  freeScheduledName,
  namedAhead,
  nameProblem,
  type PlacedBackup,
  scheduledName,
} from './backup.rules.ts'
import { type BackupRecord, openRecord } from './backup-record.ts'
import { ON_A_SERVER } from './backups.tx.ts'

export interface BackupSettings {
  /** Null: no backups are made. */
  readonly directory: string | null
  /** When scheduled backups are made; null: never. */
  readonly cron: string | null
  /** How many scheduled backups are kept. */
  readonly keep: number
}

/** The space on the disk of the store, where the copy is made. */
export interface CopyRoom {
  readonly freeBytes: number
  readonly freeBytesMin: number
  readonly storeBytes: number
}

export interface ManageBackupsPorts
  extends Part<'clock', 'now'>,
    Part<'log', 'info' | 'warn' | 'error'>,
    Reads<'listJobs'>,
    Writes<'relayId' | 'startJob' | 'noteProgress' | 'copyStore' | 'copyProgress' | 'stopCopy' | 'backupState' | 'endLeftBackups'> {
  /** The folder of backups; null: the store is on a database server, which has its own tools for backups. */
  readonly folder: BackupFolder | null
  readonly settings: () => BackupSettings
  /** The members that all orders share. `copy`: a file next to the store. */
  readonly order: Pick<BackupOrder, 'copy' | 'version' | 'keyFile'> & { readonly keys: () => readonly string[] }
  readonly room: () => CopyRoom
  /** Returns why the store accepts no writes; null: it accepts them. */
  readonly trouble: () => unknown
  readonly pause: (ms: number) => Promise<unknown>
  readonly unstored: Pick<Unstored, 'write'>
}

export interface BackupList extends BackupState {
  readonly settings: BackupSettings
  readonly backups: readonly BackupFile[]
  /** Why the folder could not be read; null: it was read. */
  readonly unreadable: string | null
}

/**
 * Lets operators back up the store (CONTRACT, `backup` and `/relay/backups`). `list` and `start` throw `not_backed_up` if the store is on a
 * database server.
 */
export type ManageBackups = Awaited<ReturnType<typeof openManageBackups>>

interface Running {
  readonly name: string
  jobId: number | null
  progress: BackupProgress
  pages: number
  isCancelled: boolean
  isStopping: boolean
  ended: Promise<void>
}

const LOOK_MS = 250
/** Reading the folder may take this long. A folder on a network may never answer. */
const LIST_MS_MAX = 5000
/** Backups that are not compared with the store by then count as holding what was erased. */
const COMPARED_MS_MAX = 30_000
/** The jobs of scheduled backups have this name in place of an app's name. */
const SCHEDULE = 'schedule'

function refuseFolder(cause: unknown): never {
  if (cause instanceof AppError) throw cause
  throw new AppError('not_backed_up', `The folder of backups cannot be used: ${describeFailure(cause)}.`, { cause })
}

/** Ends the jobs of backups that were interrupted when the relay stopped or was killed. */
export async function openManageBackups(ports: ManageBackupsPorts) {
  const { write, folder, settings, clock } = ports
  const record = await openRecord(ports)
  const list = createListing(ports, () => record.state())
  let running: Running | null = null
  const relayId = folder === null ? '' : await write.relayId()
  if (folder !== null) await write.endLeftBackups(clock.now())

  /** Queues the job of a backup and starts the backup. Does not wait until the backup has ended. */
  async function launch(name: string, place: Place, order: Order): Promise<{ readonly job: Job; readonly ended: Promise<void> }> {
    const backup: Running = { ...NEVER_BEGUN, name }
    running = backup
    const free = () => {
      running = null
    }
    try {
      await refuseMoving(ports)
      const job = await queueJob(ports, backup, order)
      backup.ended = run(ports, record, backup, { ...place, lastPlace: record.state().last?.place ?? null }).finally(free)
      return { job, ended: backup.ended }
    } catch (error) {
      free()
      throw error
    }
  }

  function placeOf(): Place {
    const { directory } = settings()
    if (folder === null) throw new AppError('not_backed_up', ON_A_SERVER)
    if (directory === null) throw new AppError('not_backed_up', 'The config names no folder for backups: set backup.directory, and reload.')
    if (running !== null) throw new AppError('not_backed_up', `The backup "${running.name}" is being made. Wait, or cancel its job.`)
    return { folder, directory }
  }

  async function listAll(): Promise<BackupList> {
    if (folder === null) throw new AppError('not_backed_up', ON_A_SERVER)
    const inEffect = settings()
    const shown = { ...record.state(), settings: inEffect }
    if (inEffect.directory === null) return { ...shown, backups: [], unreadable: null }
    try {
      return { ...shown, backups: await list({ folder, directory: inEffect.directory }), unreadable: null }
    } catch (error) {
      return { ...shown, backups: [], unreadable: describeFailure(error) }
    }
  }

  return {
    list: listAll,
    /**
     * Lists the names of the backups that may hold erased parcels, with the one that is being made. `trace` null: all may. `unreadable`: why some may
     * be missing. For a store on a database server the list is empty.
     */
    mayHold: (trace: ErasureTrace | null): Promise<{ readonly names: readonly string[]; readonly unreadable: string | null }> =>
      listHolding(ports, { list: listAll, underWay: running?.name ?? null, relayId }, trace),
    /** Starts a backup. `body`: `{ "name": "before-upgrade" }`. Throws `bad_request`, `not_backed_up` and `too_many_jobs`. */
    async start(body: unknown, by: Actor): Promise<Job> {
      const name = nameIn(body)
      const known = await list(placeOf()).catch(refuseFolder)
      if (known.some((one) => one.name === name))
        throw new AppError('not_backed_up', `There is a backup "${name}" already. Choose another name.`)
      const action = { atMs: clock.now(), by, action: 'store.backup_started', target: { kind: 'store', id: name }, detail: {} } as const
      // `placeOf` checks again whether another backup has begun in the meantime.
      return (await launch(name, placeOf(), { by: by.name, action })).job
    },
    /**
     * Makes a scheduled backup. Resolves when the backup has been made or has failed. Never rejects. While another backup is being made, or
     * the store is being moved, this one is skipped, which is no failure: a schedule may be shorter than a backup takes. So is one whose time has
     * come again because the clock was put back by less than the time since the last backup.
     */
    async scheduled() {
      const [atMs, known] = [clock.now(), running === null ? await listAll() : null]
      const name = freeScheduledName(atMs, relayId, known?.backups ?? [], record.state().last?.name)
      if (name === null || running !== null) return record.skip(name ?? scheduledName(atMs, relayId), running ?? 'made')
      try {
        const { ended } = await launch(name, placeOf(), { by: SCHEDULE })
        await ended
      } catch (error) {
        if (error instanceof AppError && error.message === MOVING) return record.skip(name, 'moving')
        await record.end({ ...NEVER_BEGUN, name }, null, describeFailure(error))
      }
    },
    /** Returns the progress of the backup with this job; null: the backup is not being made. */
    progressOf: (jobId: number): BackupProgress | null => (running?.jobId === jobId ? running.progress : null),
    state: record.state,
    /** Returns how many backups have failed since the relay started. */
    failures: record.failures,
    /** Returns how many scheduled backups were skipped since the relay started. */
    skipped: record.skipped,
    async stop() {
      if (running === null) return
      running.isStopping = true
      await write.stopCopy().catch(() => undefined)
      await running.ended
    },
  }
}

/** See `ManageBackups.mayHold`. `underWay`: the backup that is being made when this begins. One that ends meanwhile must not be missed. */
async function listHolding(
  { folder, pause }: Pick<ManageBackupsPorts, 'folder' | 'pause'>,
  { list, underWay, relayId }: { readonly list: () => Promise<BackupList>; readonly underWay: string | null; readonly relayId: string },
  trace: ErasureTrace | null,
): ReturnType<ManageBackups['mayHold']> {
  if (folder === null) return { names: [], unreadable: null }
  const { backups, unreadable, settings } = await list()
  const making = underWay === null ? [] : [underWay]
  const names = backups.map(({ name }) => name).filter((name) => name !== underWay)
  const { directory } = settings
  if (trace === null || directory === null || names.length === 0) return { names: [...making, ...names], unreadable }
  const comparing = folder.without({ directory, names, relayId, trace })
  const without: readonly string[] = await Promise.race([comparing, pause(COMPARED_MS_MAX).then(() => [])]).catch(() => [])
  return { names: [...making, ...names.filter((name) => !without.includes(name))], unreadable }
}

interface Order {
  /** The app that ordered the backup, or `SCHEDULE`. */
  readonly by: string
  /** The entry for the audit trail; absent: the schedule started the backup. */
  readonly action?: OperatorAction
}

async function queueJob({ write, clock }: ManageBackupsPorts, backup: Running, order: Order): Promise<Job> {
  const job = await write.startJob({ task: { kind: 'backup', name: backup.name }, nowMs: clock.now(), ...order })
  if (job === null) throw new AppError('too_many_jobs', 'Too many jobs have not ended. Cancel some, or wait.')
  backup.jobId = job.jobId
  return job
}

/** Creates the function that reads the folder. It never reads twice at the same time, because a read that never ends blocks a thread. */
function createListing({ pause }: ManageBackupsPorts, state: () => BackupState): (place: Place) => Promise<readonly BackupFile[]> {
  let listing: Promise<readonly BackupFile[]> | null = null
  return async ({ folder, directory }) => {
    listing ??= folder.list(directory, state().last?.place ?? null).finally(() => {
      listing = null
    })
    const late = pause(LIST_MS_MAX).then(() => Promise.reject(new Error('the folder does not answer')))
    return await Promise.race([listing, late])
  }
}

/** Makes a backup and saves its result. Never rejects. */
async function run(ports: ManageBackupsPorts, record: BackupRecord, backup: Running, place: PlaceAfter): Promise<void> {
  const { log } = ports
  try {
    const { made, unremoved } = await make(ports, backup, place)
    await record.end(backup, made, null)
    const { name, atMs, bytes } = made
    log.info({ name, atMs, bytes, directory: place.directory }, 'a backup was made')
    await warnOfNamesAhead(ports, place)
    if (unremoved !== null) log.warn({ reason: unremoved, directory: place.directory }, 'old backups could not be removed')
  } catch (error) {
    await record.end(backup, null, backup.isCancelled ? null : describeFailure(error))
  }
}

/** Such backups are neither counted nor removed until their time comes, so an operator must look at them. */
async function warnOfNamesAhead({ clock, log }: ManageBackupsPorts, { folder, directory }: Place): Promise<void> {
  const names = (await folder.list(directory, null).catch(() => [])).map(({ name }) => name)
  const ahead = namedAhead(names, clock.now())
  if (ahead.length > 0)
    log.warn(
      { backups: ahead.slice(0, 10), count: ahead.length, directory },
      'the names of backups are of times to come: a clock was ahead',
    )
}

/**
 * Throws if the store is being moved. A move writes to the store on another connection, and each of these writes would make the copying of
 * the store start over.
 */
async function refuseMoving({ reads }: ManageBackupsPorts): Promise<void> {
  if (hasUnended(await reads.listJobs({ before: null, limit: UNENDED_MAX }), 'move')) throw new AppError('not_backed_up', MOVING)
}

const MOVING = 'The store is being moved. Back it up afterwards.'

interface Place {
  readonly folder: BackupFolder
  readonly directory: string
}

type PlaceAfter = Place & Pick<BackupOrder, 'lastPlace'>

const NEVER_BEGUN = {
  jobId: null,
  pages: 0,
  progress: { step: 'copying', done: 0, total: 0 },
  isCancelled: false,
  isStopping: false,
  ended: Promise.resolve(),
} as const satisfies Omit<Running, 'name'>

function nameIn(body: unknown): string {
  const name = isObject(body) ? member(body, 'name') : undefined
  if (typeof name !== 'string') throw wrongInput('body', 'name', 'name must be the name of the backup, such as before-upgrade.')
  const problem = nameProblem(name)
  if (problem !== null) throw wrongInput('body', 'name', `name ${problem}.`)
  return name
}

/** Copies the store, checks the copy, and moves it into the folder of backups. */
async function make(ports: ManageBackupsPorts, backup: Running, place: PlaceAfter): Promise<PlacedBackup> {
  refuseLittleRoom(ports.room())
  try {
    return await makeOfCopy(ports, backup, place)
  } finally {
    // A backup that failed early has left its copy.
    await place.folder.discard(ports.order.copy).catch(() => undefined)
  }
}

async function makeOfCopy(ports: ManageBackupsPorts, backup: Running, { folder, directory, lastPlace }: PlaceAfter): Promise<PlacedBackup> {
  const { copy, version, keyFile, keys } = ports.order
  const { sequence } = await copyStore(ports, backup)
  const given = { name: backup.name, directory, lastPlace, keep: ports.settings().keep, madeAtMs: ports.clock.now(), sequence }
  const maker = await folder.openMaker({ ...given, copy, version, keyFile, keys: keys() })
  try {
    for (let turn = 0; ; turn++) {
      await refuseStopped(ports, backup, turn)
      const found = await maker.advance()
      if (!('step' in found)) return found
      backup.progress = found
    }
  } finally {
    await maker.close()
  }
}

async function copyStore(ports: ManageBackupsPorts, backup: Running): Promise<{ readonly sequence: number }> {
  const { write, pause, order } = ports
  const copying = write.copyStore({ file: order.copy })
  let isOver = false
  const over = copying.then(
    () => undefined,
    () => undefined,
  )
  void over.then(() => {
    isOver = true
  })
  try {
    while (!isOver) {
      await Promise.race([over, pause(LOOK_MS)])
      const at = await write.copyProgress()
      if (at !== null) {
        backup.progress = { step: 'copying', ...at }
        backup.pages = at.done
      }
      await refuseStopped(ports, backup, 0)
    }
  } catch (error) {
    await write.stopCopy()
    await over
    throw error
  }
  return await copying
}

/** Once in this many turns, the job is read to see whether an operator has cancelled it. */
const TURNS_PER_LOOK = 8

/** Throws if the relay stops, the store's disk has become too full for a copy, or an operator has cancelled the backup. */
async function refuseStopped({ write, trouble, clock }: ManageBackupsPorts, backup: Running, turn: number): Promise<void> {
  const { jobId, pages, isStopping } = backup
  if (isStopping) throw new Error('the relay is stopping')
  if (trouble() !== null) throw new Error('the disk of the store became too full for a copy of it')
  if (jobId === null || turn % TURNS_PER_LOOK !== 0) return
  const { isWanted } = await write.noteProgress({ jobId, done: pages, nowMs: clock.now() })
  backup.isCancelled = !isWanted
  if (!isWanted) throw new Error('it was cancelled')
}

function refuseLittleRoom({ freeBytes, freeBytesMin, storeBytes }: CopyRoom): void {
  if (freeBytes >= storeBytes + freeBytesMin) return
  throw new Error(
    `a backup is copied beside the store first, and its disk has too little room: ${freeBytes} bytes are free, the store takes ${storeBytes}, and ${freeBytesMin} must stay free (limits.freeSpaceMin)`,
  )
}
