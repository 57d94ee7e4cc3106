import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { expect, test, vi } from 'vitest'
import { writeConfig } from '../support/relay/relay.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'

test('npm start runs the relay without a shell, and leaves no process after a signal', async () => {
  const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8'))
  expect(manifest).toMatchObject({ scripts: { start: expect.stringMatching(/^exec env \S+ node /) } })
  for (const whom of ['npm', 'group'] as const) {
    const npm = tieToTest(
      spawn('npm', ['start', '--', '--config', writeConfig(temporaryFolder(), NO_CARRIER, { log: { level: 'info' } })], {
        ...ownGroup,
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    )
    const ended = new Promise((resolve) => npm.once('close', resolve))
    const lines: string[] = []
    createInterface({ input: npm.stdout }).on('line', (line) => lines.push(line))
    const { pid } = npm
    if (pid === undefined) throw new Error('npm did not start')
    await vi.waitFor(() => expect(lines.join('\n')).toContain('"msg":"relay ready"'))
    process.kill(whom === 'npm' ? pid : -pid, 'SIGTERM')
    await ended
    expect(lines.at(-1)).toContain('"msg":"relay stopped"')
    // Signal 0 only checks whether a process of the group exists.
    expect(() => process.kill(-pid, 0)).toThrow('ESRCH')
  }
})
