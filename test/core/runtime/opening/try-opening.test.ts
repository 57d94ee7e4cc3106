import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { tryOpening } from '../../../../src/core/runtime/opening/try-opening.ts'
import { makePipe } from '../../../support/network/named-pipe.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'

const PATIENT_MS = 60_000
/** A command that opens the first file and hangs at the second, as on a network disk whose server is gone. */
const never = ['sh', '-c', 'echo 0; echo 1; exec sleep 1000']

test('a file that never opens ends the trial at its deadline, and the error names it', async () => {
  const files = [
    { what: 'the config file', path: '/etc/relay.yaml' },
    { what: 'webhook.sharedKeys.0.file', path: '/mnt/gone/key' },
  ]
  await expect(tryOpening([() => files], { deadlineMs: 20, command: never })).rejects.toThrow(
    'webhook.sharedKeys.0.file: /mnt/gone/key did not open within 0.02 s',
  )
})

test('a trial whose file never opens ends at once when its caller gives up', async () => {
  const stopping = new AbortController()
  const trial = tryOpening([() => [{ what: 'store', path: '/mnt/gone/relay.db' }]], {
    deadlineMs: PATIENT_MS,
    signal: stopping.signal,
    command: never,
  })
  stopping.abort()
  await expect(trial).rejects.toThrow('the relay is stopping')
})

test('a file passes if it opens, is missing or is not regular; groups are tried in order', async () => {
  const folder = temporaryFolder()
  const [file, pipe, missing] = [join(folder, 'file'), join(folder, 'pipe'), join(folder, 'missing')]
  writeFileSync(file, 'x')
  makePipe(pipe)
  const asked: string[] = []
  const group = (name: string, paths: readonly string[]) => () => {
    asked.push(name)
    return paths.map((path) => ({ what: name, path }))
  }
  await tryOpening([group('first', [file, pipe]), group('none', []), group('last', [missing, folder])], { deadlineMs: PATIENT_MS })
  expect(asked).toEqual(['first', 'none', 'last'])
})
