#!/usr/bin/env node
// Check the version before importing anything, because an older Node fails in the middle of an import and does not say why.
const NEEDED = [24, 18] as const
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  process.stderr.write(`parcel-relay needs Node ${NEEDED.join('.')} or later; this is Node ${process.versions.node}\n`)
  process.exitCode = 1
} else {
  const { keepCompiled } = await import('./core/config/compile-cache.ts')
  if (process.argv[2] !== 'serve') keepCompiled()
  const { runProgram } = await import('./console/cli/program.ts')
  await runProgram()
}
