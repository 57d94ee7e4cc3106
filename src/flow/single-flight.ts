/** Runs one job per key at a time: whoever asks meanwhile gets the outcome of the one that is running, its failure included. */
export type SingleFlight<Value> = (key: string, start: () => Promise<Value>) => Promise<Value>

/** A single flight of its own, with its own keys. */
export function createSingleFlight<Value>(): SingleFlight<Value> {
  const flying = new Map<string, Promise<Value>>()
  return (key, start) => {
    const running = flying.get(key)
    if (running !== undefined) return running
    const flight = start().finally(() => flying.delete(key))
    flying.set(key, flight)
    return flight
  }
}
