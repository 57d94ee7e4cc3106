/** Wakes the dispatcher. Parts that are created before the dispatcher can use this. */
export interface DispatchSignal {
  /** Call when there is something to deliver. */
  wake(): void
  /** Connects the dispatcher. Earlier calls of `wake` are not needed, because the dispatcher looks at everything when it starts. */
  connect(dispatcher: Pick<DispatchSignal, 'wake'>): void
}

export function createDispatchSignal(): DispatchSignal {
  let connected: Pick<DispatchSignal, 'wake'> | undefined
  return {
    wake: () => connected?.wake(),
    connect(dispatcher) {
      connected = dispatcher
    },
  }
}
