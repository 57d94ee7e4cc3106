import { readFileSync } from 'node:fs'

/** What a process has used since it began. */
export interface Usage {
  /** User and system time of all its threads. */
  readonly cpuMs: number
  /** Of these, the thread that runs the event loop. */
  readonly mainThreadCpuMs: number
}

export interface Memory {
  readonly residentBytes: number
  /** The most it ever was. */
  readonly peakBytes: number
}

/** The kernel counts in hundredths of a second, whatever its own clock does. */
const TICK_MS = 10
/** After the name in parentheses: state is the first, utime the twelfth. */
const UTIME_AT = 11

/** Linux only, as is the machine that measures. */
export function usageOf(pid: number): Usage {
  return { cpuMs: cpuMs(`/proc/${pid}/stat`), mainThreadCpuMs: cpuMs(`/proc/${pid}/task/${pid}/stat`) }
}

export function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) * 1024
  return { residentBytes: bytes('VmRSS'), peakBytes: bytes('VmHWM') }
}

function cpuMs(path: string): number {
  const stat = readFileSync(path, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[UTIME_AT]) + Number(fields[UTIME_AT + 1])) * TICK_MS
}
