/** Signals within this time count as one signal, because Ctrl-C under npm arrives twice. */
const ONE_SIGNAL_MS = 1000

/** Resolves with the first SIGTERM or SIGINT. A second signal more than `ONE_SIGNAL_MS` later calls `endNow`, by default an exit with 1. */
export function untilSignalled(endNow: () => void = () => process.exit(1)): Promise<string> {
  return new Promise((resolve) => {
    let firstAtMs: number | null = null
    const onSignal = (signal: string) => {
      if (firstAtMs === null) {
        firstAtMs = performance.now()
        resolve(signal)
      } else if (performance.now() - firstAtMs > ONE_SIGNAL_MS) endNow()
    }
    process.on('SIGTERM', onSignal)
    process.on('SIGINT', onSignal)
  })
}
