/**
 * Runs pieces of work one after the other. After each piece it rests for as long as the piece took, but at most a second. So background work
 * leaves about half of the disk or the processor to other work.
 */
export function createDutyCycle(
  monotonic: () => number,
  rest: (ms: number) => Promise<unknown>,
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
