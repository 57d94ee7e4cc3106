/** Encrypts the keys of endpoints. An encrypted key can be opened only for its own endpoint. `seal` throws if the master key cannot be used. */
export interface Vault {
  seal(key: string, endpointId: string): Promise<string>
  /** Decrypts a key. Null: it was sealed for another endpoint, or the master key is lost. */
  open(sealed: string, endpointId: string): Promise<string | null>
  /** Whether a key was sealed with the master key that seals now. */
  isCurrent(sealed: string): boolean
}
