import { execFileSync } from 'node:child_process'
import { mkdirSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { temporaryFolder } from '../runner/temporary.ts'

/** A file system of its own, of few megabytes. */
export function smallDisk(megabytes: number): string {
  const folder = join(temporaryFolder(), 'disk')
  mkdirSync(folder)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'parcel-relay-test', folder], { stdio: 'pipe' })
  onTestFinished(() => void execFileSync('umount', ['--lazy', folder]))
  return folder
}

/** To the last byte: that somebody has written some of its own meanwhile, and not all of this fits, is as good. Returns the file that fills it. */
export function fillUp(disk: string): string {
  const { bavail, bsize } = statfsSync(disk)
  const ballast = join(disk, 'ballast')
  try {
    writeFileSync(ballast, Buffer.alloc(bavail * bsize))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
  }
  return ballast
}
