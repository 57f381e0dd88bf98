export {
  AFTER_ALL,
  checkWord,
  limitOf,
  MAX_SCANNED,
  type Page,
  type PageRequest,
  readCursor,
  TIMESTAMP,
  UUID,
  writeCursor,
} from '../store/page.ts'
