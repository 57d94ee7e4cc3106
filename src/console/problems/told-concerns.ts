import { z } from 'zod'
import { parseStored } from '../../core/domain/json-body.ts'
import { bounded, CONCERN_KINDS, type Concern } from './concern.ts'

declare module '../../core/domain/admin/replica.ts' {
  interface Replica {
    /** What is wrong at this replica and only it can know. Empty if its lease is over. */
    readonly concerns: readonly Concern[]
  }
}

const concern = z.object({
  kind: z.enum(CONCERN_KINDS),
  endpoint: z.string().nullable(),
  replica: z.null(),
  title: z.string(),
  sinceMs: z.number().nullable(),
  evidence: z.array(z.string()),
  todo: z.array(z.string()),
})

/** Decodes what a replica has told. Leaves out what it does not know, because another version may have told it. */
export function decodeConcerns(json: string | null): readonly Concern[] {
  const told = json === null ? [] : parseStored(json)
  return bounded(Array.isArray(told) ? told.flatMap((one) => concern.safeParse(one).data ?? []) : [])
}
