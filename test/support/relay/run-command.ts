import { execFile } from 'node:child_process'
import { shipped } from '../runner/shipped.ts'
import { ADMIN } from './relay.ts'

export interface CommandResult {
  readonly code: unknown
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command as shipped. It runs asynchronously, so that a relay in this process can answer it. */
export function runCommand(args: readonly string[], more: NodeJS.ProcessEnv = {}, input = ''): Promise<CommandResult> {
  const run = shipped()
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [...run.args, ...args], { env: { ...run.env, ...more } }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    )
    child.stdin?.end(input)
  })
}

/** Returns the environment with which a command finds this relay, and logs in as its operator. */
export function operatorEnv(relay: { readonly internalUrl: string }): NodeJS.ProcessEnv {
  return { RELAY_URL: relay.internalUrl, RELAY_USERNAME: ADMIN.username, RELAY_PASSWORD: ADMIN.password }
}

export function commandsOf(relay: { readonly internalUrl: string }) {
  return (...args: readonly string[]): Promise<CommandResult> => runCommand(args, operatorEnv(relay))
}
