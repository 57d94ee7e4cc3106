/** Wakes the dispatcher, which is made last, for those that are made before it. */
export interface DispatchSignal {
  /** There is something to deliver. */
  wake(): void
  /** Parcels were joined: what is first of a parcel may have changed. */
  review(): void
  /** From now on. Until then nothing is lost: the dispatcher looks at everything when it starts. */
  follow(dispatcher: Pick<DispatchSignal, 'wake' | 'review'>): void
}

export function createDispatchSignal(): DispatchSignal {
  let followed: Pick<DispatchSignal, 'wake' | 'review'> | undefined
  return {
    wake: () => followed?.wake(),
    review: () => followed?.review(),
    follow(dispatcher) {
      followed = dispatcher
    },
  }
}
