/** Repeats work until stopped, each time `everyMs` after the last run has ended. The work must not fail. */
export function startRepeating(work: () => Promise<void>, everyMs: number): { readonly stop: () => void } {
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  const again = () => {
    timer = setTimeout(() => void work().then(() => (stopped ? undefined : again())), everyMs)
    timer.unref()
  }
  again()
  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
