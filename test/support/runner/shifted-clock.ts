/** Returns an environment in which the wall clock of a Node process is `ms` ahead. Its monotonic clock is right. */
export function shiftedClock(ms: number): NodeJS.ProcessEnv {
  const program = `
    const TrueDate = Date
    globalThis.Date = class extends TrueDate {
      constructor(...given) { given.length === 0 ? super(TrueDate.now() + ${ms}) : super(...given) }
      static now() { return TrueDate.now() + ${ms} }
    }`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(program)}` }
}
