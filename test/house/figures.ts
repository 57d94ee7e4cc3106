import { holdToLimits } from './house-limits.ts'
import { measureHouse } from './measure-house.ts'

const figures = measureHouse(process.cwd())
for (const { name, value, limit, place } of holdToLimits(figures)) {
  const shown = Number.isInteger(value) ? String(value) : value.toFixed(4)
  console.info(`${name.padEnd(44)} ${shown.padStart(6)}  limit ${limit}\n    ${place}`)
}
console.info(`${figures.functions.length} functions in ${figures.files.length} files`)
