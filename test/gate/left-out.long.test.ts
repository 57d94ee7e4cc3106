import { spawnSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/runner/temporary.ts'

test('without system tools the tests pass, and the last line names the tests that were left out', () => {
  const onlyNode = temporaryFolder()
  symlinkSync(process.execPath, join(onlyNode, 'node'))
  const files = ['test/faults/durability/syscall-order.test.ts', 'test/core/domain/delivery/delivery-request.test.ts']
  const projects = ['--project=unit', '--project=process']
  const { status, stdout } = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...projects, ...files], {
    encoding: 'utf8',
    env: { PATH: onlyNode, TMPDIR: onlyNode, NO_COLOR: '1' },
  })
  expect(stdout).toMatch(/\d+ passed \| \d+ skipped/)
  const last = stdout.trimEnd().split('\n').at(-1)
  expect(last).toMatch(
    /^Left out: the tests that need .*openssl \(apt-get install openssl\), pgbouncer \(apt-get install pgbouncer\), promtool \(apt-get install prometheus\), python3 \(apt-get install python3\), socat \(apt-get install socat\), script \(apt-get install bsdutils\), strace \(apt-get install strace/,
  )
  expect(status).toBe(0)
})
