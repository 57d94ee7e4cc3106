import { execFileSync, spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { documentedCommands } from '../support/docs/shell-session.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const STEP = documentedCommands('README.md', 'install').find((command) => command.includes('read -rs')) ?? ''
const SHELLS = ['sh', 'bash', 'dash', 'zsh'].filter((shell) => spawnSync(shell, ['-c', ':']).status === 0)

test.each(["it's", `a"b'c`, 'a$HOME`id`$(id)', 'back\\slash\\', ' blanks and #! ', 'p%s&/;|<>*?~ö'])(
  'the step of the README stores the password %s so that every shell reads it unchanged',
  (password) => {
    const cwd = temporaryFolder()
    execFileSync('bash', ['-c', STEP], { cwd, input: `${password}\n` })
    expect(SHELLS.length).toBeGreaterThan(1)
    for (const shell of SHELLS) {
      const read = execFileSync(shell, ['-c', '. ./relay.env && printf %s "$RELAY_UPSTREAM_PASSWORD"'], { cwd, encoding: 'utf8' })
      expect([shell, read]).toEqual([shell, password])
    }
  },
)
