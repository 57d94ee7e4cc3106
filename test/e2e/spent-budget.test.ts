import { expect, onTestFinished, test } from 'vitest'
import { startWorld } from '../faults/world.ts'
import { operatorOf } from '../support/relay/manage.ts'

test('an answer that fails because the day’s calls are used up says so, and when calls resume', async () => {
  const world = await startWorld({ upstream: { callsPerDay: 1 } })
  onTestFinished(() => world.stop())
  const operate = await operatorOf(world)
  const said = (until: string) => `${until}Today's calls to the carrier (upstream.callsPerDay) are used up; the relay can ask again from `
  let numbers = 0
  // The only call of the day gets a token. If the day ends between two requests, the next request uses the new day's call.
  const askApp = async () => await (await world.get(`/v1/status/WB30000000${numbers++ % 10}SE/all`)).json()
  await expect.poll(askApp).toMatchObject({
    status: 503,
    detail: expect.stringMatching(
      /^This parcel is not known here, .* used up; the relay can ask again from \d{4}-\d\d-\d\dT00:00:00\.000Z\.$/,
    ),
  })
  const refreshed = async () => (await operate('POST', '/relay/parcels/WB400000001SE/refresh')).body.detail
  await expect.poll(refreshed).toContain(said('The carrier cannot be asked now. '))
  await operate('PUT', '/relay/parcels/WB500000001SE/watch')
  const watched = async () => await (await world.get('/v1/status/WB500000001SE/all')).json()
  await expect.poll(watched).toMatchObject({ detail: expect.stringContaining(said('about this parcel yet. ')) })
})
