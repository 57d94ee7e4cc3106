import { readdirSync, readFileSync } from 'node:fs'

/** What a process has used since its start. */
export interface Usage {
  /** User and system time of all its threads. */
  readonly cpuMs: number
  /** The part of the threads whose event loops answer: the main thread and the relay's receiver. */
  readonly loopsCpuMs: number
}

export interface Memory {
  readonly residentBytes: number
  /** Anonymous memory: heaps and buffers. */
  readonly anonymousBytes: number
  /** Peak resident memory. */
  readonly peakBytes: number
}

/** The kernel reports processor time in units of 10 ms (USER_HZ). */
const TICK_MS = 10
/** The name of the relay's receiver thread. */
const RECEIVER = 'receiver'
/** Index of utime among the fields after the name in parentheses. */
const UTIME_AT = 11

/** Reads `/proc`, so it works only on Linux. */
export function usageOf(pid: number): Usage {
  const loops = readdirSync(`/proc/${pid}/task`).filter((id) => Number(id) === pid || nameOf(pid, id) === RECEIVER)
  return {
    cpuMs: cpuMs(`/proc/${pid}/stat`),
    loopsCpuMs: loops.reduce((sum, id) => sum + cpuMs(`/proc/${pid}/task/${id}/stat`), 0),
  }
}

/** User and system time of the children of this process that have ended. */
export function cpuMsOfChildren(): number {
  return cpuMs('/proc/self/stat', UTIME_AT + 2)
}

export function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) * 1024
  return { residentBytes: bytes('VmRSS'), anonymousBytes: bytes('RssAnon'), peakBytes: bytes('VmHWM') }
}

function nameOf(pid: number, id: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/task/${id}/comm`, 'utf8').trim()
  } catch {
    // The thread has ended.
    return null
  }
}

function cpuMs(path: string, at = UTIME_AT): number {
  const stat = readFileSync(path, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[at]) + Number(fields[at + 1])) * TICK_MS
}
