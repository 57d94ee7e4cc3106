import pg from 'pg'

/** The template database with the current schema. Copying it takes half as long as running the migrations. */
export const TEMPLATE = 'relay_template'

/** Runs `work` on a connection of its own. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Returns the URL of another database on the same server. */
export function addressOf(server: string, database: string): string {
  const url = new URL(server)
  url.pathname = `/${database}`
  return url.href
}

/** Takes every connection that a server gives, those of a relay too; returns what gives them all back. */
export async function takeConnections(url: string): Promise<() => Promise<void>> {
  const taken: pg.Client[] = []
  const takeRest = async () => {
    for (;;) {
      const client = new pg.Client({ connectionString: url })
      // One that the server ends with itself.
      client.on('error', () => undefined)
      try {
        await client.connect()
      } catch {
        return
      }
      taken.push(client)
    }
  }
  await takeRest()
  const [first] = taken
  for (let ended = 1; ended > 0; ) {
    const { rowCount } = (await first?.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'parcel-relay'",
    )) ?? { rowCount: 0 }
    ended = rowCount ?? 0
    await takeRest()
  }
  return async () => void (await Promise.all(taken.map((client) => client.end())))
}
