import type { Log } from '../../../src/core/flow/ports.ts'

/** A log that keeps its lines, fields included. */
export function createLogBook() {
  const lines: { readonly level: string; readonly message: string; readonly fields: object }[] = []
  const at = (level: string) => (fields: object, message: string) => void lines.push({ level, message, fields })
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { log, lines }
}
