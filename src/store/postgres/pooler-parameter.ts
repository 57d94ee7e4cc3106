/**
 * Takes `pgbouncer=true` off an address: the word, known from other tools, for a pooler in transaction mode that knows no named statements. It is for the
 * relay and no parameter of the driver or the server. `named`: whether connections may keep statements prepared.
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
