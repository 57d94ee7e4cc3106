import type { LessonTable } from '../../../core/store/polling/shared-carrier.ts'
import type { WatchedPool } from '../server-watch.ts'
import { alone, whole } from './alone.ts'

const takingLessons = (replicaId: number, limit: number) =>
  `with alive as (select id from replica where id = ${whole(replicaId)} for key share)
  delete from lesson where id in (select id from lesson order by id limit ${whole(limit)}) and exists (select 1 from alive) returning id, body`

/** Opens the table in which replicas store what they learn about the carrier (their lessons), for the poller to read. */
export function createLessonTable({ pool, run }: WatchedPool): LessonTable {
  return {
    async add(lesson) {
      await run(() => pool.query('insert into lesson (body) values ($1)', [lesson]))
    },
    async take(replicaId, limit) {
      const rows = await run(() => alone<{ id: number; body: string }>(pool, takingLessons(replicaId, limit)))
      return rows.toSorted((a, b) => a.id - b.id).map(({ body }) => body)
    },
  }
}
