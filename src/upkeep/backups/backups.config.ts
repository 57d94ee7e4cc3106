import type { z } from 'zod'
import type { DeepReadonly } from '../../core/config/config.ts'
import type { Section } from '../../core/config/schema.ts'
import { type Complaint, valueAt } from '../../core/config/source.ts'
import { cron, section, text, whole } from '../../core/config/values.ts'

declare module '../../core/config/config.ts' {
  interface Settings {
    readonly backup?: DeepReadonly<z.output<ReturnType<typeof backup>>>
  }
}

function backup() {
  return section({
    cron: cron
      .nullable()
      .default(null)
      .describe('When a backup is made by itself, in the time zone `zone`, such as "15 3 * * *". Default: never.'),
    directory: text
      .nullable()
      .default(null)
      .describe(
        'The folder of backups, relative to the working directory. The folder that contains it must exist. Default: none, and no backup can be made.',
      ),
    keep: whole(1, 1000).default(14).describe('How many scheduled backups are kept. Backups that you order stay until you remove them.'),
  })
    .prefault({})
    .describe('Backups of an SQLite store. PostgreSQL is backed up with its own tools.')
}

/** Complains about a schedule without a folder. No backups would be made, and nobody would notice until one is needed. */
function homelessBackups(values: unknown): readonly Complaint[] {
  const path = ['backup', 'cron']
  const [cron, directory] = [valueAt(values, path) ?? null, valueAt(values, ['backup', 'directory']) ?? null]
  return cron === null || directory !== null ? [] : [{ path, message: 'needs backup.directory, the folder in which backups are made' }]
}

export const BACKUP_SECTION: Section = { name: 'backup', after: 'identifierReuseAfter', schema: backup, check: homelessBackups }
