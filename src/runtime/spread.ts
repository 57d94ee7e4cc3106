/**
 * Lets so many of those who come at once go on in one turn of the event loop, the next ones in the next: what all of them do then keeps
 * nobody else waiting.
 */
export function createSpread(atOnce: number): () => Promise<void> {
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
