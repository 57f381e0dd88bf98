export {
  AFTER_ALL,
  checkWord,
  INSTANT,
  limitOf,
  MAX_SCANNED,
  type Page,
  type PageRequest,
  readCursor,
  UUID,
  writeCursor,
} from '../store/page.ts'
