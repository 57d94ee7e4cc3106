import { basename, dirname, join } from 'node:path'
import { build, type Plugin } from 'rolldown'
import config from '../../rolldown.config.ts'

/** What a relay leaves out that counts nothing for the carrier's report. The relay itself has no switch for it. */
const LEFT_OUT: readonly (readonly [file: string, before: string, after: string])[] = [
  [
    'src/core/domain/history/report-notes.ts',
    'export function notedOfMerge(merged: Merged): readonly Noted[] {',
    'export function notedOfMerge(merged: Merged): readonly Noted[] {\n  if (merged !== undefined) return []',
  ],
  ['src/core/store/admin/report-note-rows.ts', 'if (noted.length > 0) session', 'if (noted.length < 0) session'],
]

/** Compiles a relay beside another compiled `main.js`, without the counts for the carrier's report. Returns its `main.js`. */
export async function buildWithoutReport(relayEntry: string): Promise<string> {
  const left = new Set<string>()
  const plugin: Plugin = {
    name: 'without report',
    transform(code, id) {
      const [file = '', before = '', after = ''] = LEFT_OUT.find(([path]) => id.endsWith(path)) ?? []
      if (file === '') return null
      if (!code.includes(before)) throw new Error(`${file} has changed: say in ${basename(import.meta.url)} what to leave out`)
      left.add(file)
      return { code: code.replace(before, after) }
    },
  }
  const dir = `${dirname(relayEntry)}-without-report`
  await build({ ...config, plugins: [...config.plugins, plugin], output: { ...config.output, dir, sourcemap: false } })
  if (left.size !== LEFT_OUT.length) throw new Error('not every file was found that counts for the report')
  return join(dir, 'main.js')
}
