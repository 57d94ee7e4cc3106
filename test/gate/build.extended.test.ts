import { build } from 'rolldown'
import { expect, test } from 'vitest'
import shippedBuild from '../../rolldown.config.ts'

test('the build gives no warning', async () => {
  const warnings: string[] = []
  await build({
    ...shippedBuild,
    write: false,
    plugins: [],
    onLog: (level, { message }) => void warnings.push(`${level}: ${message ?? ''}`),
  })
  expect(warnings.filter((line) => !line.startsWith('debug'))).toEqual([])
})
