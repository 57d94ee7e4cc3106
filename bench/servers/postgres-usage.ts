import { readdirSync, readFileSync } from 'node:fs'

/** The kernel reports processor time in units of 10 ms (USER_HZ). */
const TICK_MS = 10
/** Index of these among the fields after the name in parentheses. */
const PARENT_AT = 1
const TIMES_AT = 11

/**
 * Processor time of a PostgreSQL server since its start, in milliseconds: of its main process, of those it has started, and of those of them that
 * have ended.
 */
export function serverCpuMs(mainPid: number): number {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => fieldsOf(Number(name)))
    .filter((fields) => Number(fields[PARENT_AT]) === mainPid)
  const own = fieldsOf(mainPid)
  return (sum(own, TIMES_AT, 4) + children.reduce((total, fields) => total + sum(fields, TIMES_AT, 2), 0)) * TICK_MS
}

/** Empty: the process has ended. */
function fieldsOf(pid: number): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

function sum(fields: readonly string[], from: number, count: number): number {
  return fields.slice(from, from + count).reduce((total, field) => total + Number(field), 0)
}
