/**
 * Removes `pgbouncer=true` from an address, because the driver and the server do not know this parameter. It says that the address is of a
 * pooler in transaction mode, which cannot keep prepared (named) statements. `named`: whether the relay may use such statements.
 */
export function takePoolerParameter(url: string): { readonly url: string; readonly named: boolean } {
  const [address = '', query] = url.split(/\?(.*)/s)
  if (query === undefined) return { url, named: true }
  const params = query.split('&')
  const said = params.filter((param) => param.startsWith('pgbouncer='))
  if (said.some((param) => !/=(?:true|false)$/.test(param))) throw new Error('store: pgbouncer in the address must be true or false.')
  const rest = params.filter((param) => !said.includes(param)).join('&')
  return { url: rest === '' ? address : `${address}?${rest}`, named: said.at(-1) !== 'pgbouncer=true' }
}
