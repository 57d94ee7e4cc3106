import { readdirSync, readFileSync } from 'node:fs'

/** What a process has used since it began. */
export interface Usage {
  /** User and system time of all its threads. */
  readonly cpuMs: number
  /** Of these, the threads whose event loops answer: the first one, and the relay's that receives. */
  readonly loopsCpuMs: number
}

export interface Memory {
  readonly residentBytes: number
  /** What is no file's: heaps and buffers. */
  readonly anonymousBytes: number
  /** The most it ever was. */
  readonly peakBytes: number
}

/** The kernel counts in hundredths of a second, whatever its own clock does. */
const TICK_MS = 10
/** What the relay calls the thread that receives. */
const RECEIVER = 'receiver'
/** After the name in parentheses: state is the first, utime the twelfth. */
const UTIME_AT = 11

/** Linux only, as is the machine that measures. */
export function usageOf(pid: number): Usage {
  const loops = readdirSync(`/proc/${pid}/task`).filter((id) => Number(id) === pid || nameOf(pid, id) === RECEIVER)
  return {
    cpuMs: cpuMs(`/proc/${pid}/stat`),
    loopsCpuMs: loops.reduce((sum, id) => sum + cpuMs(`/proc/${pid}/task/${id}/stat`), 0),
  }
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
    // It has ended meanwhile.
    return null
  }
}

function cpuMs(path: string): number {
  const stat = readFileSync(path, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[UTIME_AT]) + Number(fields[UTIME_AT + 1])) * TICK_MS
}
