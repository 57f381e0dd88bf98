export { Complaints } from '../input/complaints.ts'
export {
  isRecord,
  isStorable,
  join,
  readChoice,
  readClockMs,
  readInteger,
  readNumber,
  readRecord,
  readText,
  readWord,
  unstorable,
} from '../input/read-fields.ts'
