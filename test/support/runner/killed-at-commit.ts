import { resolve } from 'node:path'

/**
 * Returns an environment in which a Node process kills itself (SIGKILL) at the nth step, counted from 1 and from the moment when the file `armed` is
 * there. A step is the moment before or after a commit of SQLite, or before a write to a file.
 */
export function killedAtCommit(step: number, armed: string): NodeJS.ProcessEnv {
  const program = `
    import fs from 'node:fs'
    import { createRequire, syncBuiltinESMExports } from 'node:module'
    const Database = createRequire(${JSON.stringify(resolve('package.json'))})('better-sqlite3')
    let steps = 0
    const count = () => {
      if (!fs.existsSync(${JSON.stringify(armed)})) return
      steps += 1
      if (steps === ${step}) process.kill(process.pid, 'SIGKILL')
    }
    const prepare = Database.prototype.prepare
    Database.prototype.prepare = function (sql, ...given) {
      const statement = prepare.call(this, sql, ...given)
      const run = statement.run
      if (sql === 'COMMIT')
        statement.run = () => {
          count()
          const done = run.call(statement)
          count()
          return done
        }
      return statement
    }
    for (const name of ['writeSync', 'fsyncSync', 'ftruncateSync']) {
      const real = fs[name]
      fs[name] = (...given) => {
        count()
        return real(...given)
      }
    }
    syncBuiltinESMExports()`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(program)}` }
}
