import { expect, test } from 'vitest'
import { NO_ROOM_TEXT, StorageFailure } from '../../../src/core/domain/errors.ts'
import { createTombstoneKeyKeeper } from '../../../src/upkeep/erasure/tombstone-key.ts'

/** Makes a keeper with a vault that seals a text by writing the name of its at-rest key before it. */
function open({ sealed = null, isUsed = false, missed = null, atRest = ['one'], left = [], failure = null }: Partial<Given> = {}) {
  let stored = sealed
  let keys = atRest
  const used: string[] = []
  const repeated: string[] = []
  const unfinished = [...left]
  const keeper = createTombstoneKeyKeeper({
    where: () => 'relay.db.key',
    clock: { now: () => 0 },
    makeKey: () => Buffer.from('made'),
    vault: {
      async seal(text, name) {
        if (failure !== null) throw failure
        return `${keys[0]}/${name}/${text}`
      },
      async open(text, name) {
        const [key = '', of, value = ''] = text.split('/')
        return keys.includes(key) && of === name ? value : null
      },
      isCurrent: (text) => text.startsWith(`${keys[0]}/`),
    },
    write: {
      tombstoneKey: async () => ({ sealed: stored, isUsed }),
      async keepTombstoneKey({ before, sealed: next }) {
        if (stored !== before) return stored ?? next
        stored = next
        return next
      },
      useTombstoneKey: async (key) => void used.push(Buffer.from(key).toString()),
      missedErasures: async () => ({ sealedKey: missed, count: missed === null ? 0 : 2 }),
      async searchMissed() {
        repeated.push('search by tombstones')
        return { pushes: 0, mentions: 0, unreadable: 0, found: [], next: null }
      },
      async repeatErasures({ after }) {
        repeated.push(`erase after "${after}"`)
        if (after === '') unfinished.push('GONE0001')
        return after === '' ? { next: 'M', names: ['GONE0001'] } : { next: null, names: [] }
      },
      unfinishedErasures: async () => unfinished,
      async endErasures({ identifiers }) {
        repeated.push(`end ${identifiers.join()}`)
      },
      async searchMentions({ identifiers }) {
        repeated.push(`search ${identifiers.join()}`)
        return { pushes: 0, mentions: 0, unreadable: 0, found: [], next: null }
      },
      async cleanStorage() {
        repeated.push('clean')
        return { state: 'clean' }
      },
      settleErasures: async () => void repeated.push('settle'),
    },
  })
  const rotate = (next: readonly string[]) => {
    keys = [...next]
  }
  return { keeper, used, repeated, rotate, stored: () => stored }
}

interface Given {
  readonly sealed: string | null
  readonly isUsed: boolean
  /** The sealed key of the tombstones that the restored store lacks, or null if it lacks none. */
  readonly missed: string | null
  readonly atRest: string[]
  /** The identifiers of an erasure that a kill has interrupted. */
  readonly left: readonly string[]
  /** Why the at-rest key cannot be used now. */
  readonly failure: Error | null
}

const sealedBy = (key: string, text = 'made') => `${key}/tombstones/${Buffer.from(text).toString('base64')}`

test('the key of tombstones is made at the first erasure, and not before', async () => {
  const { keeper, used, stored } = open()
  await keeper.open()
  expect([keeper.isKnown(), stored()]).toEqual([false, null])
  await keeper.ensure()
  await keeper.ensure()
  expect([keeper.isKnown(), used, stored()]).toEqual([true, ['made'], sealedBy('one')])
})

test('if another replica has made the key of tombstones first, its key is used', async () => {
  const { keeper, used } = open({ sealed: sealedBy('one', 'theirs') })
  await keeper.open()
  expect(used).toEqual(['theirs'])
})

test('a lost at-rest key prevents the start only if something was erased', async () => {
  await expect(open({ sealed: sealedBy('gone'), isUsed: true }).keeper.open()).rejects.toThrow('Restore relay.db.key as it was')
  const unused = open({ sealed: sealedBy('gone') })
  await unused.keeper.open()
  expect([unused.used, unused.stored()]).toEqual([['made'], sealedBy('one')])
})

test('a reseal keeps the key of tombstones, and seals it with the first at-rest key', async () => {
  const { keeper, rotate, stored } = open()
  expect(await keeper.reseal()).toBe('none')
  await keeper.ensure()
  expect(await keeper.reseal()).toBe('upToDate')
  rotate(['two', 'one'])
  expect(await keeper.reseal()).toBe('resealed')
  expect(stored()).toBe(sealedBy('two'))
  rotate(['three'])
  expect(await keeper.reseal()).toBe('unreadable')
})

test('a restored store repeats the erasures that it lacks, and a crash on the way loses none', async () => {
  const { keeper, used, repeated, stored } = open({ missed: sealedBy('one', 'theirs') })
  expect(await keeper.open()).toBe(1)
  expect([used, stored()]).toEqual([['theirs'], sealedBy('one', 'theirs')])
  const order = 'search by tombstones, erase after "", erase after "M", search GONE0001, end GONE0001, clean, settle'
  expect(repeated.join(', ')).toBe(order)
})

test('a start ends an erasure that was killed before all records were searched', async () => {
  const { keeper, repeated } = open({ sealed: sealedBy('one'), isUsed: true, left: ['GONE0001', 'GONE0002'] })
  await keeper.open()
  expect(repeated).toEqual(['search GONE0001,GONE0002', 'end GONE0001,GONE0002'])
})

test('tombstones are refused if they belong to another store, or if their key is lost', async () => {
  const others = open({ sealed: sealedBy('one', 'mine'), isUsed: true, missed: sealedBy('one', 'theirs') })
  await expect(others.keeper.open()).rejects.toThrow('belong to another store')
  await expect(open({ missed: sealedBy('gone') }).keeper.open()).rejects.toThrow('no at-rest key decrypts')
})

test('a full disk is not taken for a key that is lost: the refusal of an erasure names the disk', async () => {
  for (const failure of [
    Object.assign(new Error('no room'), { code: 'ENOSPC' }),
    Object.assign(new Error('full'), { code: 'SQLITE_FULL' }),
  ])
    await expect(open({ failure }).keeper.ensure()).rejects.toMatchObject({ code: 'storage_unavailable', message: NO_ROOM_TEXT })
  await expect(open({ failure: new StorageFailure('down') }).keeper.ensure()).rejects.toMatchObject({
    message: expect.stringMatching(/^The store/),
  })
  await expect(open({ failure: new Error('broken') }).keeper.ensure()).rejects.toMatchObject({
    message: expect.stringContaining('relay.db.key'),
  })
})
