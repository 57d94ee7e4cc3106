import type { Refusal } from '../../core/domain/ingest/refused-spells.ts'
import type { Reads } from '../../core/flow/relay-part.ts'
import type { Transactions } from '../../core/store/write-store.ts'
import { addRefusal, listRefusals } from './refusals.rows.ts'
import type { KeptRefusal } from './refusals.rules.ts'

/** Lists refused pushes, the newest first. Only a sample of them is examined and stored. */
export type ListRefusals = (query: {
  readonly cursor: number | null
  readonly limit: number
}) => Promise<{ readonly refusals: readonly KeptRefusal[]; readonly next: string | null }>

export function createListRefusals({ reads }: Reads<'session'>): ListRefusals {
  return async ({ cursor, limit }) => {
    const refusals = await listRefusals(reads.session, { before: cursor, limit })
    const last = refusals.length < limit ? undefined : refusals.at(-1)
    return { refusals, next: last === undefined ? null : String(last.refusalId) }
  }
}

/** Stores the explanations of refused pushes, so that they outlast a restart and every replica shows all of them. */
export function createKeepRefusal(store: Transactions) {
  return {
    /** Stores an explained refusal, and deletes the oldest refusals beyond `REFUSALS_KEPT`. */
    keepRefusal: (refusal: Refusal) => store.transaction(async (tx) => addRefusal(tx, refusal)),
  }
}
