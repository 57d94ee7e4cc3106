import Database from 'better-sqlite3'

/** What an aged store holds. */
export interface AgedStore {
  readonly parcels: number
  readonly deliveries: number
  readonly waiting: number
  readonly dead: number
  readonly quarantined: number
}

/**
 * Makes a filled store look as if it had run for a while: of nine parcels in ten all was delivered, of a hundredth all was given up, and one
 * push in a thousand is quarantined. It is written past the relay, whose own way to 1,400,000 deliveries takes a quarter of an hour.
 */
export function ageStore(path: string): AgedStore {
  const db = new Database(path, { fileMustExist: true })
  db.exec(`
    BEGIN;
    UPDATE delivery SET state = 2, attempts = 1, settled_at_ms = queued_at_ms,
      accepted_at_ms = queued_at_ms, accepted_duration_ms = 5, accepted_status = 200 WHERE parcel_id % 10 <> 0;
    UPDATE delivery SET state = 3, attempts = 1, settled_at_ms = queued_at_ms, reason = 'rejected',
      accepted_at_ms = NULL, accepted_duration_ms = NULL, accepted_status = NULL WHERE parcel_id % 100 = 1;
    INSERT INTO attempt (delivery_id, at_ms, duration_ms, status) SELECT id, queued_at_ms, 5, 410 FROM delivery WHERE state = 3;
    UPDATE inbox SET state = 1, reason = 'schema' WHERE id % 1000 = 0;
    COMMIT;
  `)
  const number = (sql: string) => Number(db.prepare(sql).pluck().get())
  const aged = {
    parcels: number('SELECT count(*) FROM parcel'),
    deliveries: number('SELECT count(*) FROM delivery'),
    waiting: number('SELECT count(*) FROM delivery WHERE state < 2'),
    dead: number('SELECT count(*) FROM delivery WHERE state = 3'),
    quarantined: number('SELECT count(*) FROM inbox WHERE state = 1'),
  }
  db.close()
  return aged
}
