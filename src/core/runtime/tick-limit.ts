/** Creates a function that lets `atOnce` waiting callers go on in each turn of the event loop, so that other work can run in between. */
export function createTickLimit(atOnce: number): () => Promise<void> {
  const waiting: (() => void)[] = []
  function letGo(): void {
    for (const go of waiting.splice(0, atOnce)) go()
    if (waiting.length > 0) setImmediate(letGo)
  }
  return () =>
    new Promise((resolve) => {
      if (waiting.push(resolve) === 1) setImmediate(letGo)
    })
}
