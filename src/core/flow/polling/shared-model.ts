import { encodeLesson, type Lesson, parseLesson } from '../../domain/polling/model-codec.ts'
import type { ScanSample } from '../../domain/polling/scan-rate.ts'
import type { LessonTable } from '../../store/polling/shared-carrier.ts'
import type { Relay } from '../relay-part.ts'
import type { CarrierModelKeeper } from './carrier-model.ts'
import type { ModelCheckpoint } from './model-checkpoint.ts'

export interface SharedModelPorts extends Pick<Relay, 'log'> {
  readonly table: LessonTable
  readonly keeper: CarrierModelKeeper
  readonly checkpoint: ModelCheckpoint
  readonly isPoller: () => boolean
  /** The id of this replica in the store. */
  readonly replicaId: () => number
}

/** The most samples in one lesson, which covers one second. More samples would teach little. */
const SAMPLES_MAX = 500
const FOUND_MAX = 1000
const LESSONS_AT_ONCE = 100

/** Collects what this replica has learnt, until `leave` stores it for the poller. */
function createLessonBuffer() {
  let samples: ScanSample[] = []
  let foundByPoll: number[] = []
  let pushes: Lesson['pushes'] = null
  let misread: Lesson['misread'] = null
  const added = (before: Lesson['pushes'], atMs: number, count: number) => ({
    count: (before?.count ?? 0) + count,
    lastAtMs: Math.max(before?.lastAtMs ?? 0, atMs),
  })
  return {
    sample(one: ScanSample): void {
      if (samples.length < SAMPLES_MAX) samples.push(one)
    },
    pushed(atMs: number, count: number): void {
      pushes = added(pushes, atMs, count)
    },
    misread(atMs: number, count: number): void {
      misread = added(misread, atMs, count)
    },
    found(eventAtMs: number): void {
      if (foundByPoll.length < FOUND_MAX) foundByPoll.push(eventAtMs)
    },
    /** Null: nothing was collected since the last call. */
    take(): Lesson | null {
      if (pushes === null && misread === null && samples.length + foundByPoll.length === 0) return null
      const lesson = { samples, pushes, misread, foundByPoll }
      samples = []
      foundByPoll = []
      pushes = null
      misread = null
      return lesson
    },
  }
}

/** The model of the carrier that replicas share. The poller keeps the model. The other replicas leave lessons for it: what they have learnt. */
export type SharedModel = ReturnType<typeof createSharedModel>

export function createSharedModel({ table, keeper, checkpoint, isPoller, replicaId, log }: SharedModelPorts) {
  const unsent = createLessonBuffer()

  function learn({ samples, pushes, misread, foundByPoll }: Lesson): void {
    for (const sample of samples) keeper.learn(sample)
    if (pushes !== null) keeper.pushed(pushes.lastAtMs, pushes.count)
    if (misread !== null) keeper.misread(misread.lastAtMs, misread.count)
    for (const eventAtMs of foundByPoll) keeper.foundByPoll(eventAtMs)
  }

  return {
    keeper: {
      ...keeper,
      learn: (sample) => (isPoller() ? keeper.learn(sample) : unsent.sample(sample)),
      pushed: (atMs, count) => (isPoller() ? keeper.pushed(atMs, count) : unsent.pushed(atMs, count)),
      misread: (atMs, count) => (isPoller() ? keeper.misread(atMs, count) : unsent.misread(atMs, count)),
      foundByPoll: (eventAtMs) => (isPoller() ? keeper.foundByPoll(eventAtMs) : unsent.found(eventAtMs)),
    } satisfies CarrierModelKeeper,
    checkpoint: {
      ...checkpoint,
      keep: async (learnt, how?: { readonly all: boolean }) =>
        isPoller() ? await checkpoint.keep(learnt, how) : { health: learnt.channel.health, eventQueued: false },
    } satisfies ModelCheckpoint,
    /** Stores what this replica has learnt since the last call. Must be called every second. */
    async leave() {
      const left = unsent.take()
      if (left === null) return
      if (isPoller()) learn(left)
      else await table.add(encodeLesson(left))
    },
    /** Learns the lessons that the other replicas have left. Only the poller may call it. */
    async fold() {
      for (;;) {
        const texts = await table.take(replicaId(), LESSONS_AT_ONCE)
        for (const text of texts) {
          const lesson = parseLesson(text)
          if (lesson === null) log.error({}, 'a lesson about the carrier that another replica has left cannot be read')
          else learn(lesson)
        }
        if (texts.length < LESSONS_AT_ONCE) return
      }
    },
    /** Loads the model that the poller saved last. `resume`: this replica continues from it as the poller. */
    async load(how: { readonly resume: boolean }) {
      keeper.replace(await checkpoint.reload(how))
    },
    /** Saves everything for the next poller. */
    async handOver() {
      keeper.settle()
      await checkpoint.keep(keeper.learnt(), { all: true })
    },
  }
}

export interface ModelSharingPorts extends Pick<Relay, 'log'> {
  readonly model: Pick<SharedModel, 'leave' | 'load'>
  /** Whether this replica is the poller. */
  readonly isPoller: () => boolean
  /** Reads the health of pushes from the model. */
  readonly lookAtPushes: () => Promise<void>
}

/** Keeps the model of the carrier the same on all replicas. A failure is logged, and the next call tries again. */
export function createModelSharing({ model, isPoller, lookAtPushes, log }: ModelSharingPorts) {
  const load = async () => {
    if (isPoller()) return
    await model.load({ resume: false })
    await lookAtPushes()
  }
  return {
    /** Passes what this replica has learnt on to the poller. */
    leave: () =>
      model
        .leave()
        .catch((err: unknown) => log.debug({ err }, 'cannot tell the poller what this replica has learnt; the relay tries again')),
    /** Loads the model that the poller has saved, unless this replica is the poller. */
    load: () => load().catch((err: unknown) => log.debug({ err }, 'cannot read the model of the carrier; the relay tries again')),
  }
}
