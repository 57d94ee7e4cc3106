import type { Engine } from '../../../src/core/store/contract.ts'
import { createManageErasures, type ManageErasuresPorts } from '../../../src/upkeep/erasure/manage-erasures.ts'
import { OPERATOR } from '../relay/operator.ts'
import { NOON } from '../runner/constants.ts'
import { openStore } from './write-side.ts'

const KEY = Buffer.alloc(32, 7)

/** Opens a store with what erases its parcels. `erased`: how many parcels each erasure has removed. */
export async function openErasures(engine: Engine, place: string | null = null, ports: Partial<ManageErasuresPorts> = {}) {
  const store = await openStore(NOON, engine, place)
  const { writes } = store
  const erased: number[] = []
  const erasures = createManageErasures({
    write: writes,
    key: {
      async ensure() {
        await writes.keepTombstoneKey({ before: null, sealed: 'sealed' })
        await writes.useTombstoneKey(KEY)
      },
    },
    listBackups: async () => ({ names: ['nightly'], unreadable: null }),
    listLeftStores: async () => [],
    forget: () => undefined,
    meter: { erased: (parcels) => void erased.push(parcels) },
    clock: { now: store.now },
    relayId: writes.relayId,
    ...ports,
  })
  async function* linesOf(identifiers: readonly string[]) {
    for (const identifier of identifiers) yield JSON.stringify(identifier)
  }
  return {
    ...store,
    erasures,
    erased,
    forget: (identifier: string, dryRun = false) => erasures.forget(identifier, { dryRun }, OPERATOR),
    forgetList: (identifiers: readonly string[]) =>
      erasures.forgetList({ format: 'ndjson', column: null, dryRun: false, lines: linesOf(identifiers), by: OPERATOR }),
  }
}
