/** Throws unless each of the two replicas can decrypt what the other encrypts. */
export function refuseOtherKeys(mine: readonly string[], other: { readonly name: string; readonly keys: readonly string[] }): void {
  const [myFirst] = mine
  const [otherFirst] = other.keys
  const opens = (keys: readonly string[], first: string | undefined) => first === undefined || keys.includes(first)
  if (opens(mine, otherFirst) && opens(other.keys, myFirst)) return
  throw new Error(
    `secrets.atRestKeys: another relay on this database, ${other.name}, has other keys, and one of the two could not decrypt what the other encrypts. Give both ` +
      'the same keys. To replace a key, first add the new one at the end everywhere, then move it to the front. If that relay was stopped just now, start this one again in a few seconds.',
  )
}
