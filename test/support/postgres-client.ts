import pg from 'pg'

/** The database on the shared server that holds the schema of this version: a copy takes half as long as making it anew. */
export const TEMPLATE = 'relay_template'

/** Does one thing on a server, on a connection of its own. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** The address of another database on the same server. */
export function addressOf(server: string, database: string): string {
  const url = new URL(server)
  url.pathname = `/${database}`
  return url.href
}
