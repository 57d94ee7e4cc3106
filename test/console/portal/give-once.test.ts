import { expect, test } from 'vitest'
import { createGiveOnce } from '../../../src/console/portal/form.ts'
import type { FormerOrder } from '../../../src/core/domain/admin/operator-action.ts'

const MINUTE_MS = 60_000
const FORM = { id: 'one', fields: 'name=till' }

/** Starts replicas that share one store. `give` stores the form, or fails if another replica has stored it, as a transaction does. */
function start() {
  let nowMs = 1_000_000
  const stored = new Map<string, FormerOrder>()
  const given: string[] = []
  const replica = () =>
    createGiveOnce<string>({ reads: { findFormerOrder: async (id) => stored.get(id) ?? null }, clock: { now: () => nowMs } })
  const give = async (by: string, form = FORM) => {
    await Promise.resolve()
    if (stored.has(form.id)) throw new Error('a row with the same key exists')
    stored.set(form.id, {
      action: { id: 1, atMs: nowMs, by: { kind: 'app', name: 'admin', address: null }, action: by, target: null, detail: {} },
      fields: form.fields,
      shown: null,
    })
    given.push(by)
    return `${by} gave it`
  }
  const send = (giveOnce: ReturnType<typeof replica>, by: string, form = FORM) =>
    giveOnce(form, {
      give: () => give(by, form),
      again: async ({ action }) => `${action.action} gave it`,
      isRefused: (answer) => answer === 'refused',
    })
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { replica, send, given, stored, pass }
}

test('a form that is sent at two replicas at once is carried out once, and both answer the same', async () => {
  const { replica, send, given } = start()
  const [one, other] = [replica(), replica()]
  const answers = await Promise.all([send(one, 'one'), send(other, 'other'), send(one, 'a third press')])
  expect([new Set(answers).size, given.length]).toEqual([1, 1])
})

test('a form that is sent again has the same answer for ten minutes, and is carried out once', async () => {
  const { replica, send, given, pass } = start()
  const giveOnce = replica()
  await send(giveOnce, 'one')
  pass(10 * MINUTE_MS)
  expect(await send(giveOnce, 'again')).toBe('one gave it')
  pass(1)
  await expect(send(giveOnce, 'again')).rejects.toMatchObject({ code: 'stale_form' })
  expect(given).toEqual(['one'])
})

test('a form that is sent again with other fields is refused, also while the first is under way', async () => {
  const { replica, send, given } = start()
  const giveOnce = replica()
  const [first, second] = [send(giveOnce, 'one'), send(giveOnce, 'other', { ...FORM, fields: 'name=shop' })]
  await expect(second).rejects.toMatchObject({ code: 'stale_form' })
  expect(await first).toBe('one gave it')
  expect(given).toEqual(['one'])
})

test('a form whose order failed is carried out when it is sent again', async () => {
  const { replica, send, given } = start()
  const giveOnce = replica()
  const failing = giveOnce(FORM, {
    give: () => Promise.reject(new Error('the disk is full')),
    again: async () => '',
    isRefused: () => false,
  })
  await expect(failing).rejects.toThrow('the disk is full')
  expect(await send(giveOnce, 'one')).toBe('one gave it')
  expect(given).toEqual(['one'])
})
