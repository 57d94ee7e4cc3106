import { z } from 'zod'
import { COLUMNS, FORMATS, type Format, SCHEMA } from './flat-rows.rules.ts'

const whole = () => z.int().min(0)

/** The files with rows that an export makes. */
const WITH_ROWS = String.raw`events-\d{15}-\d{15}-[0-9a-f]{12}\.(?:${FORMATS.join('|')})`

const fileSchema = z.object({
  name: z.string().regex(new RegExp(`^${WITH_ROWS}$`)),
  format: z.enum(FORMATS),
  schema: whole(),
  firstSequence: whole(),
  lastSequence: whole(),
  knownTo: whole(),
  rows: whole(),
  bytes: whole(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})

const manifestSchema = z.object({
  schema: z.literal(SCHEMA),
  format: z.enum(FORMATS),
  relay: z.string().min(1),
  startsAfter: whole(),
  cursor: whole(),
  columns: z.array(z.object({ name: z.string(), type: z.string() })).readonly(),
  files: z.array(fileSchema.readonly()).readonly(),
})

/** A file of an export. Its rows have sequences from the first to the last, and show nothing that the relay learnt after the sequence `knownTo`. */
export type ExportedFile = Manifest['files'][number]

/**
 * What a folder holds. Only files named here count. `relay`: its id. The export began after the sequence `startsAfter` (0: with the feed), and the next
 * one goes on after `cursor`.
 */
export type Manifest = Readonly<z.output<typeof manifestSchema>>

export function newManifest(relay: string, format: Format, startsAfter: number): Manifest {
  return { schema: SCHEMA, format, relay, startsAfter, cursor: startsAfter, columns: COLUMNS, files: [] }
}

/** Throws with a sentence for the user. `where`: the path, for the sentence. */
export function parseManifest(text: string, where: string): Manifest {
  const read = manifestSchema.safeParse(parsed(text))
  if (read.success) return read.data
  const schema = z.object({ schema: z.int() }).safeParse(parsed(text))
  throw new Error(
    schema.success && schema.data.schema !== SCHEMA
      ? `${where} is of schema ${schema.data.schema}, and this program writes schema ${SCHEMA}: export into a new folder`
      : `${where} is no manifest of an export, or is damaged: bring back a copy, or export into a new folder`,
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** The files that an export makes in its folder, besides its manifest and its lock. */
const OURS = new RegExp(String.raw`^(?:${WITH_ROWS}|next\.part|manifest\.json\.new)$`)

/** Says which of the files in a folder an export has left there that did not end, or an erasure that did not delete the old ones. */
export function leftoversIn(names: readonly string[], manifest: Manifest | null): readonly string[] {
  const named = new Set(manifest?.files.map(({ name }) => name))
  return names.filter((name) => OURS.test(name) && !named.has(name))
}

export function nameOf(file: Pick<ExportedFile, 'firstSequence' | 'lastSequence' | 'sha256' | 'format'>): string {
  const [first, last] = [file.firstSequence, file.lastSequence].map((sequence) => String(sequence).padStart(15, '0'))
  return `events-${first}-${last}-${file.sha256.slice(0, 12)}.${file.format}`
}
