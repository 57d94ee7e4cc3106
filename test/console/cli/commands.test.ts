import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { shipped } from '../../support/runner/shipped.ts'

test('the manual lists exactly the commands that exist', () => {
  const { args, env } = shipped()
  const help = spawnSync(process.execPath, [...args, '--help'], { encoding: 'utf8', env }).stdout
  const known = [...help.matchAll(/^ {2}([a-z][a-z-]*)(?= )/gm)].map(([, name = '']) => name).filter((name) => name !== 'help')
  const section = readFileSync('docs/operating.md', 'utf8').split('## Commands')[1]?.split('\n## ')[0] ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('| `'))
  const listed = rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([a-z-]+)/g)].map(([, name = '']) => name))
  expect(known.length).toBeGreaterThan(4)
  expect([...new Set(listed)].sort()).toEqual(known.sort())
})
