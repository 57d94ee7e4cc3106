/** Parts that are made before the dispatcher use this to wake it. */
export interface DispatchSignal {
  /** Call when there is something to deliver. */
  wake(): void
  /** Connects the dispatcher. No earlier signal is lost, because the dispatcher looks at everything when it starts. */
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
