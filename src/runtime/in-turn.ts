/**
 * Runs one piece of work after the other, and rests after each as long as it took: what many pieces need together never takes more than half
 * of what they share, however many ask for them at once.
 */
export function createInTurn(
  monotonic: () => number,
  rest: (ms: number) => Promise<unknown> = pause,
): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return <T>(work: () => Promise<T>) => {
    const turn = last.then(async () => {
      const beganMs = monotonic()
      try {
        return { value: await work(), tookMs: monotonic() - beganMs }
      } catch (error) {
        return { error, tookMs: monotonic() - beganMs }
      }
    })
    last = turn.then(({ tookMs }) => rest(Math.min(tookMs, REST_MS_MAX)))
    return turn.then((ended) => {
      if ('error' in ended) throw ended.error
      return ended.value
    })
  }
}

const REST_MS_MAX = 1000

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
