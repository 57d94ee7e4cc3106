import { loadLifecycles } from '/work/main/bench/polling/lifecycles.ts'
import { drawPushes } from '/work/main/bench/polling/losses.ts'
import { runRelay } from '/work/main/bench/polling/relay-run.ts'
import { matchFixedPoller } from '/work/main/bench/polling/fixed-poller.ts'
const H=3600e3
const cadence={ byStatusMs: { Created: 2*H, Ingested: H, DeliveryStarted: H/4 }, defaultMs: H, whenPushIsHealthy: 4, tailMs: [H,24*H,72*H], staleAfterMs: 30*24*H }
const [n,...specs]=process.argv.slice(2)
for (const spec of specs){ const [r,l]=spec.split(':'); const lc=loadLifecycles(r,+n); const p=drawPushes(lc,+l,null,7)
const run=await runRelay(lc,p,{cadence}); const f=matchFixedPoller(lc,p,run.calls)
const m=(x)=>(x/60000).toFixed(1)
console.log(spec,'calls/parcel',(run.calls/n).toFixed(2),'fixed I h',(f.intervalMs/H).toFixed(2),'lost mean min',m(run.staleness.lost.meanMs),'p50',m(run.staleness.lost.p50Ms),'p95',m(run.staleness.lost.p95Ms),'fixed',m(f.staleness.lost.meanMs),'ratio',(run.staleness.lost.meanMs/f.staleness.lost.meanMs).toFixed(3),'n',run.staleness.lost.count,'took',(run.tookMs/1000).toFixed(1), run.healthChanges.slice(0,6).map(h=>h.health+'@'+((h.atMs-run.startMs)/H).toFixed(1)).join(' '))}
