import { systemCode } from '../domain/errors.ts'

/** Whether a process runs on this machine. The process may belong to another user. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return systemCode(error) !== 'ESRCH'
  }
}
