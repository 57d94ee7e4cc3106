import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Config } from '../../config/config.ts'
import { type SigningKeys, signingKeysOf } from '../../config/signing-keys.ts'
import { type CommitStats, commitStatsOf } from '../../domain/history/recording.ts'
import { addMisdirected, type MisdirectedPath, type Refusal, type RefusalSamples } from '../../domain/ingest/refused-spells.ts'
import { createVerifier, type Verifier } from '../../domain/ingest/signature.ts'
import {
  type CachedTemplate,
  createComebacks,
  createEventTemplateCache,
  createReceive,
  createRefusedSenders,
} from '../../flow/ingest/receive.ts'
import type { Clock, Log } from '../../flow/ports.ts'
import { createCountFailure, createPerMinute } from '../../http/server/authorize.ts'
import { createRawBodies } from '../../http/server/raw-body.ts'
import { createAddressOf } from '../../http/server/request-headers.ts'
import { createPublicListener } from '../../http/server/server.ts'
import { createMemory } from '../../runtime/answer-cache.ts'
import { admitOutsideTrouble, type DiskSign, type DiskWatch, refuseInTrouble } from '../../runtime/disk-watch.ts'
import { boundsOf, type CommitQueue, createGroupCommit } from '../../runtime/group-commit.ts'
import { createTurnReport } from '../../runtime/threads/thread.ts'
import type { RenewTls } from '../certificates.ts'
import { type Listening, listen } from '../listen.ts'

/** The settings that receiving needs, as plain data. */
export interface ReceiveSettings extends Pick<Config, 'limits'> {
  readonly listen: Config['listen']['public']
  readonly webhook: Pick<Config['webhook'], 'path' | 'bodyBytesMax'>
  readonly keys: SigningKeys
}

export interface ReceiveSidePorts {
  readonly queue: CommitQueue
  readonly disk: Pick<DiskWatch, 'trouble'>
  readonly clock: Clock
  readonly log: Log
  /** Makes what examines some of the refused pushes, one short step after the other. `explained` is called with what it finds. */
  readonly examine: (
    ports: Pick<ReceiveSidePorts, 'clock' | 'log'> & {
      /** Lets all other waiting work run first. */
      readonly yieldToOthers: () => Promise<unknown>
      readonly explained: (refusal: Refusal) => void
    },
    keys: SigningKeys,
  ) => RefusalSamples
}

/** The pushes and commits since the last report. */
export interface ReceiverNews {
  readonly pushes: readonly PushCount[]
  /** Commits, in order. A failed commit is listed as its error. */
  readonly commits: readonly (CommitStats | Error)[]
  /** Refused pushes with the causes that an examination has found. */
  readonly refusals: readonly Refusal[]
  /** Some of the addresses that sent pushes whose signature did not match, the latest first. */
  readonly refusedSenders: readonly string[]
  /** Why pushes were quarantined; each reason once. */
  readonly reasons: readonly string[]
  /** `first`: how many pushes could not be stored when they first came. `again`: how many of them have come again and were stored. */
  readonly comebacks: { readonly first: number; readonly again: number }
}

interface PushCount {
  readonly outcome: string
  readonly keyIndex: number | null
  readonly count: number
  /** When the first of them was answered. */
  readonly atMs: number
}

/** The receive side with its host, as the rest of the relay uses it. */
export interface Receiver {
  readonly verbs: Omit<ReceiveSide, 'news'>
  /** Shows the receive side whether there is trouble with the disk. */
  readonly diskSign: DiskSign
  /** Starts to pass on the reports and, if the receive side has a thread, the thread's log lines. Call it once. */
  forwardNews(tell: (news: ReceiverNews) => void, log: Log): void
}

export function receiveSettingsOf(config: Config): ReceiveSettings {
  return {
    listen: config.listen.public,
    limits: config.limits,
    webhook: { path: config.webhook.path, bodyBytesMax: config.webhook.bodyBytesMax },
    keys: signingKeysOf(config),
  }
}

function verifierOf({ push }: SigningKeys): Verifier {
  return createVerifier(push.map(({ key }) => key))
}

/** The most senders that a report names. Anybody can be a sender, so there may be millions. */
const SENDERS_MAX = 5

function collectNews(clock: Clock) {
  const pushes = new Map<string, PushCount>()
  let commits: (CommitStats | Error)[] = []
  let explained: Refusal[] = []
  let senders: readonly string[] = []
  const reasons = new Set<string>()
  let cameBack = { first: 0, again: 0 }
  const report = createTurnReport((): ReceiverNews => {
    const news = {
      pushes: [...pushes.values()],
      commits,
      refusals: explained,
      refusedSenders: senders,
      reasons: [...reasons],
      comebacks: cameBack,
    }
    pushes.clear()
    reasons.clear()
    commits = []
    explained = []
    senders = []
    cameBack = { first: 0, again: 0 }
    return news
  })
  const meter = {
    pushReceived(outcome: string, keyIndex: number | null) {
      const name = `${outcome} ${keyIndex}`
      const known = pushes.get(name) ?? { outcome, keyIndex, count: 0, atMs: clock.now() }
      pushes.set(name, { ...known, count: known.count + 1 })
      report.changed(false)
    },
  }
  const addCommit = (commit: CommitStats | Error) => {
    commits.push(commit)
    // The dispatcher must know of queued deliveries and joined parcels at once. `/readyz` must know of a failed commit at once.
    report.changed(commit instanceof Error || commit.queued || commit.joined)
  }
  const addRefusal = (refusal: Refusal) => {
    explained.push(refusal)
    report.changed(false)
  }
  const addSender = (address: string) => {
    if (!senders.includes(address)) senders = [address, ...senders].slice(0, SENDERS_MAX)
  }
  const comebacks = createComebacks({
    tell(what) {
      cameBack = { ...cameBack, [what]: cameBack[what] + 1 }
      report.changed(false)
    },
    clock,
  })
  const addReason = (reason: string) => void reasons.add(reason)
  return { report, meter, addCommit, addRefusal, addSender, addReason, comebacks }
}

const TEMPLATES_MAX = 4096

type News = Pick<ReturnType<typeof collectNews>, 'addCommit' | 'addReason'>

function openRecorder(
  { queue, disk, clock }: Pick<ReceiveSidePorts, 'queue' | 'disk' | 'clock'>,
  bounds: ReturnType<typeof boundsOf>,
  { addCommit, addReason }: News,
): ReturnType<typeof refuseInTrouble> {
  const groupCommit = createGroupCommit(
    {
      queue,
      monotonic: clock.monotonic,
      onCommitted: (committed) => addCommit(commitStatsOf(committed)),
      onFailed: (error) => addCommit(error instanceof Error ? error : new Error(String(error))),
    },
    bounds,
  )
  const recorder = refuseInTrouble(groupCommit, disk)
  return {
    ...recorder,
    async submit(incoming) {
      const outcome = await recorder.submit(incoming)
      if (outcome.kind === 'quarantined') addReason(outcome.reason)
      return outcome
    },
  }
}

/** Everything that receives pushes. It can run on any thread, so arguments and results are plain data. */
export type ReceiveSide = ReturnType<typeof openReceiveSide>

export function openReceiveSide(settings: ReceiveSettings, { queue, disk, clock, log, examine }: ReceiveSidePorts) {
  const { limits, webhook } = settings
  const { report, meter, addCommit, addRefusal, addSender, addReason, comebacks } = collectNews(clock)
  const recorder = openRecorder({ queue, disk, clock }, boundsOf(limits.batch), { addCommit, addReason })
  let current = verifierOf(settings.keys)
  // Look the verifier up at every push, because a reload replaces it.
  const verifier: Verifier = { verify: (body, signature) => current.verify(body, signature) }
  const parseEvent = createEventTemplateCache(createMemory<CachedTemplate>({ entriesMax: TEMPLATES_MAX }))
  const addressOf = createAddressOf(settings.listen.trustProxy)
  const countFailure = createCountFailure(createPerMinute(limits.failuresPerMinute), addressOf)
  const senders = createRefusedSenders(clock)
  const refusals = examine({ clock, log, yieldToOthers: () => nextTurn(), explained: addRefusal }, settings.keys)
  let misdirected: readonly MisdirectedPath[] = []
  const listener = createPublicListener({
    log,
    meter,
    receive: createReceive({
      verifier,
      parseEvent,
      recorder,
      admit: admitOutsideTrouble(disk),
      meter,
      clock,
      refusals,
      comebacks,
    }),
    refusals,
    addressOf,
    path: webhook.path,
    misdirected(request) {
      misdirected = addMisdirected(misdirected, request, clock.now())
      meter.pushReceived(request.isSigned ? 'wrong_path' : 'wrong_path_unsigned', null)
    },
    countFailure(req, failure) {
      const address = addressOf(req)
      senders.add(address)
      addSender(address)
      return countFailure(req, failure)
    },
    bodies: createRawBodies({
      bodyBytesMax: webhook.bodyBytesMax,
      bytesInFlightMax: limits.bodyBytesInFlight,
      connectionsMax: limits.connections,
    }),
  })
  let listening: Listening | null = null
  return {
    /** Starts to accept pushes. If another relay uses the address, waits up to `patienceMs` until it is free. */
    async listen(patienceMs: number) {
      listening = await listen('public', { ...settings.listen, limits, patienceMs }, listener)
      const { url, port, tlsUntilMs } = listening
      return { url, port, tlsUntilMs }
    },
    async replaceKeys(keys: SigningKeys) {
      current = verifierOf(keys)
      refusals.replaceKeys(keys)
    },
    /** See `Listening`. */
    async renewTls(files: Parameters<RenewTls>[0]) {
      if (listening === null) throw new Error('listen.public.tls: the listener is not open')
      return await listening.renewTls(files)
    },
    /** Resolves when there is something to report. The host then calls it again. */
    news: report.next,
    /** Counts the pushes that wait for their commit. Resolves only after `news` has reported everything that happened before the call. */
    async waiting() {
      await report.flush()
      return recorder.pending()
    },
    /** Lists senders of pushes whose signature did not match, the latest first. The list is a sample since the start of the relay. */
    refusedSenders: async () => senders.list(),
    /** Lists the wrong paths to which something was posted since the start of the relay. */
    misdirected: async () => misdirected,
    /** Resolves when every accepted push is on disk. */
    drained: () => recorder.drained(),
    /** Accepts nothing new. Resolves when everything in flight is on disk and answered, or after `timeoutMs`. */
    async stop(timeoutMs: number) {
      await listening?.stop(timeoutMs)
      await recorder.drained()
    },
  }
}
