/** Repeats `work` until stopped. Waits `everyMs` between the end of one run and the start of the next. `work` must not reject. */
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
