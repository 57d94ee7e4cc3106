import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { z } from 'zod'
import type { Engine } from '../../../src/core/store/contract.ts'
import { isWholeCount } from './hot-statements.ts'

/** Statements that may read a table or an index from end to end, and why. */
const WHOLE: readonly (readonly [statement: RegExp, because: string])[] = [
  [/^select (?:(?:"id"|"mark") from "\w+"(?: order by "id" desc)? limit 1|max\("id"\) as "id" from "\w+")$/, 'it stops at the first row'],
  [
    /^select count\(\*\) as "count", min\(id\) as "first", max\(id\) as "last" from "inbox" where "state" = [123] and (?:"reason" = \S+|"id" > 0)$/,
    'an index that holds only such pushes, of which there are few',
  ],
  [/^select \* from "tombstone" order by "mark"$/, 'a start and a restore read what was erased'],
  [/^delete from "tombstone"$/, 'the command that gives up all tombstones, with the relay stopped'],
  [/^select "identifier" from "erasure" order by "identifier"$/, 'a start reads which erasures a kill has left'],
]

/** Whether a statement may read a whole table that grows. */
export function mayReadAll(statement: string): boolean {
  return isWholeCount(statement) || WHOLE.some(([pattern]) => pattern.test(statement.trim()))
}

const texts = z.array(z.string())

/** Returns every statement of the store as an engine sends it, those too that no test runs. */
export async function allStatements({ name }: Engine): Promise<readonly string[]> {
  const script = fileURLToPath(new URL('print-statements.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [script, name], { maxBuffer: 64 * 1024 * 1024 })
  return [...new Set(texts.parse(JSON.parse(stdout)))]
}
