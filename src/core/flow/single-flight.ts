/** Runs at most one job for each key at a time. Callers that come while it runs get its outcome, even if it fails. */
export interface SingleFlight<Value> {
  (key: string, start: () => Promise<Value>): Promise<Value>
  /** Returns the job that is running for a key; undefined: no job is running. */
  underWay(key: string): Promise<Value> | undefined
}

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
