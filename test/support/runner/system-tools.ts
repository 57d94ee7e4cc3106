import { spawnSync } from 'node:child_process'

/** Tools that some tests need besides Node and npm: a command that checks for each, and how to install it. */
const TOOLS = {
  bash: { look: ['bash', '-c', 'exit'], remedy: 'apt-get install bash' },
  caddy: { look: ['caddy', 'version'], remedy: 'apt-get install caddy' },
  curl: { look: ['curl', '--version'], remedy: 'apt-get install curl' },
  openssl: { look: ['openssl', 'version'], remedy: 'apt-get install openssl' },
  pgbouncer: { look: ['pgbouncer', '--version'], remedy: 'apt-get install pgbouncer' },
  promtool: { look: ['promtool', '--version'], remedy: 'apt-get install prometheus' },
  python3: { look: ['python3', '--version'], remedy: 'apt-get install python3' },
  socat: { look: ['socat', '-V'], remedy: 'apt-get install socat' },
  script: { look: ['script', '-qfec', 'true', '/dev/null'], remedy: 'apt-get install bsdutils' },
  strace: { look: ['strace', '-f', '-o', '/dev/null', 'true'], remedy: 'apt-get install strace, and the right to trace' },
  'systemd-analyze': { look: ['systemd-analyze', '--version'], remedy: 'apt-get install systemd' },
  'a small file system': { look: ['unshare', '--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt'], remedy: 'run as root with SYS_ADMIN' },
} as const

export type Tool = keyof typeof TOOLS

const found = new Map<Tool, boolean>()

export function lacks(tool: Tool): boolean {
  const [command, ...args] = TOOLS[tool].look
  const known = found.get(tool) ?? spawnSync(command, args, { stdio: 'ignore' }).status === 0
  found.set(tool, known)
  return !known
}

/** Returns a sentence that names the tools whose tests were skipped, or null if none were. */
export function leftOut(): string | null {
  const missing = (Object.keys(TOOLS) as readonly Tool[]).filter(lacks)
  if (missing.length === 0) return null
  return `Left out: the tests that need ${missing.map((tool) => `${tool} (${TOOLS[tool].remedy})`).join(', ')}.`
}
