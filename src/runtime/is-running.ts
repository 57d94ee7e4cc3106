import { systemCode } from '../domain/errors.ts'

/** Whether a process of this machine runs, also one of another user. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return systemCode(error) !== 'ESRCH'
  }
}
