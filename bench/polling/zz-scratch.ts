import { loadLifecycles } from '/work/main/bench/polling/lifecycles.ts'
import { lessonsOf } from '/work/main/src/domain/lessons.ts'
import { nextCheck, worthOf } from '/work/main/src/domain/cadence.ts'
import { outlookOf, hourOfWeek } from '/work/main/src/domain/rhythm.ts'
import { createOutlookKeeper } from '/work/main/src/flow/outlook.ts'
const H=3600e3,M=60e3
const cadence={ byStatusMs: { Created: 2*H, Ingested: H, DeliveryStarted: H/4 }, defaultMs: H, whenPushIsHealthy: 4, tailMs: [H,24*H,72*H], staleAfterMs: 30*24*H }
const n=+process.argv[2], rate=+process.argv[3]
const lc=loadLifecycles('daily',n)
function U(o,from,to,cap=99){let u=1,f=0,acc=0;const end=Math.min(to,from+5*24*H);for(let a=from;a<end;){const h=hourOfWeek(a);const nx=Math.min(end,(Math.floor(a/H)+1)*H);const d=(nx-a)/H;u*=Math.exp(-o.rates[h]*d);f+=(1-u)*o.followingRates[h]*d;acc+=(1-u+Math.min(f,cap))*d;a=nx};return [1-u+Math.min(f,cap),acc,u]}
function sim(index){
 let now=0; const keeper=createOutlookKeeper({now:()=>now})
 const start=Math.min(...lc.map(l=>l.scans[0].atMs)); const births=lc.map((l,i)=>[l.scans[0].atMs,i]).sort((a,b)=>a[0]-b[0]); let b=0
 const st=lc.map((l,i)=>({parcelId:i+1,latest:null,entryCount:0,watchedAtMs:l.scans[0].atMs,revivedAtMs:l.scans[0].atMs,checkedAtMs:null,failures:0,unpollable:false,next:Infinity,known:0}))
 const plan=s=>{const x=nextCheck(s,keeper.current(),cadence); s.next=x.kind==='at'?x.atMs:Infinity}
 let left=0,calls=0,stale=0,cnt=0; const by={}
 const live=new Set()
 for(now=start;now<start+9*24*H;now+=M){
  while(b<births.length&&births[b][0]<=now){const s=st[births[b][1]];plan(s);live.add(s);b++}
  left=Math.min(left+rate,Math.max(rate,1))
  if(left<1)continue
  let due=[...live].filter(s=>s.next<=now)
  due=due.map(s=>[index(s,now,keeper.current()),s]).sort((x,y)=>y[0]-x[0])
  for(const [,s] of due){ if(left<1)break; left--;calls++; const l=lc[s.parcelId-1]; const ks=l.scans.filter(x=>x.atMs<=now); const k=(s.latest?.status??'none'); by[k]=(by[k]||0)+1
   for(let j=s.known;j<ks.length;j++){stale+=now-ks[j].atMs;cnt++}
   for(const x of lessonsOf(s,{kind:'poll',askedAtMs:now},ks)) keeper.learn(x)
   s.known=ks.length;s.entryCount=ks.length;s.latest=ks.at(-1);s.checkedAtMs=now;plan(s); if(s.next===Infinity)live.delete(s)
  }
 }
 return [(calls/n).toFixed(2),(stale/cnt/M).toFixed(0),cnt,Object.entries(by).map(([k,v])=>k+' '+(v/n).toFixed(2)).join(' ')]
}


const K=6
function chain(o,status,count,from,to,more){ // expected unknown at to, its integral, and at to+more
 const first=outlookOf(o.rhythm,status,count); if(first===null) return null
 const rs=[first.rates]; for(let k=1;k<K;k++){const x=outlookOf(o.rhythm,status,count+k-1); rs.push(x===null?first.rates:x.followingRates)}
 const p=new Float64Array(K+1); p[0]=1; let acc=0,u=0,un=0; const st=Math.max(from,to-5*24*H); const end=to+more*H; let at=st
 const step=(nx)=>{const h=hourOfWeek(at),d=(nx-at)/H; let flow=0; for(let k=0;k<K;k++){const m=p[k]*(1-Math.exp(-rs[k][h]*d)); p[k]+=flow-m; flow=m} p[K]+=flow; u=0; for(let k=1;k<=K;k++)u+=k*p[k]; at=nx; return d}
 while(at<to){const d=step(Math.min(to,(Math.floor(at/H)+1)*H)); acc+=u*d} un=u; const p0=p[0]
 while(at<end) step(Math.min(end,(Math.floor(at/H)+1)*H))
 return [un,acc,u]
}
const look=(f,T)=>(s,now,o)=>{ if(s.latest?.status==='DeliverySucceeded') return -1e9-s.next/1e6; const from=s.latest===null?s.revivedAtMs:Math.max(s.latest.atMs,s.checkedAtMs); const h=(now-from)/H; const one=s.latest===null?1:0; const c=s.latest===null?chain(o,'Created',1,from,now,T):chain(o,s.latest.status,s.entryCount,from,now,T); const [u,a,u2]=c??[.1*h,.05*h*h,.1*(h+T)]; return f(u+one,a+one*h,h,u2-u,one)}
const todo={ A:look((u,a)=>a,6), R:look((u,a,h,d)=>a/(1+d*3),6), LL:look((u,a,h,d)=>u*12-d*12+a*.3,12), LL6:look((u,a,h,d)=>u*6-d*6+a*.3,6), L12:look((u,a,h,d)=>u*12-d*12,12),L24:look((u,a,h,d)=>u*12-d*12,24),LL1:look((u,a,h,d)=>u*12-d*12+a,12), L18h:look((u,a,h,d)=>u*18-d*18,9)}
for(const k of (process.argv[4]??Object.keys(todo).join()).split(',')) console.log(k,...sim(todo[k]))
