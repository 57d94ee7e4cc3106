import pg from 'pg'

/** The template database with the current schema. Copying it takes half as long as running the migrations. */
export const TEMPLATE = 'relay_template'

export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

export function addressOf(server: string, database: string): string {
  const url = new URL(server)
  url.pathname = `/${database}`
  return url.href
}

const TAKER = 'taker'
const ATTEMPTS = 1000

/** Takes every connection of a server, even those of a relay. Returns a function that gives them back. */
export async function takeConnections(url: string): Promise<() => Promise<void>> {
  const taken: pg.Client[] = []
  const takeRest = async () => {
    for (;;) {
      const client = new pg.Client({ connectionString: url, application_name: TAKER })
      // The server may end the connection when it stops.
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
  if (first === undefined) throw new Error('the server gives no connection')
  const { rows } = await first.query<{ max: number }>("select setting::int as max from pg_settings where name = 'max_connections'")
  const max = rows[0]?.max ?? 0
  // The statement misses a connection that is just logging in, because it has no name yet. So try several times.
  for (let attempt = 0; taken.length < max; attempt++) {
    if (attempt === ATTEMPTS) throw new Error(`others keep ${max - taken.length} connections`)
    await first.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and application_name <> $1",
      [TAKER],
    )
    await takeRest()
  }
  return async () => void (await Promise.all(taken.map((client) => client.end())))
}
