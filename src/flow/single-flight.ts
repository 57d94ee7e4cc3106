/** Runs one job per key at a time. Callers that arrive meanwhile get the outcome of the running job, including its failure. */
export interface SingleFlight<Value> {
  (key: string, start: () => Promise<Value>): Promise<Value>
  /** The job that runs for a key, if one does. */
  underWay(key: string): Promise<Value> | undefined
}

/** Creates a single flight with its own keys. */
export function createSingleFlight<Value>(): SingleFlight<Value> {
  const flying = new Map<string, Promise<Value>>()
  const run = (key: string, start: () => Promise<Value>) => {
    const running = flying.get(key)
    if (running !== undefined) return running
    const flight = start().finally(() => flying.delete(key))
    flying.set(key, flight)
    return flight
  }
  return Object.assign(run, { underWay: (key: string) => flying.get(key) })
}
