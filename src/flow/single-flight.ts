/** Runs one job per key at a time. Callers that arrive meanwhile get the outcome of the running job, including its failure. */
export type SingleFlight<Value> = (key: string, start: () => Promise<Value>) => Promise<Value>

/** Creates a single flight with its own keys. */
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
